"""Where everything is put together: settings, drivers by name, processes, the command table."""
