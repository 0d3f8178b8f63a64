"""The API: a gRPC and a REST server over one generic implementation, authentication and authorization."""
