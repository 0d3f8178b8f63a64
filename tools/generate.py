"""Makes everything that is made from proto/: `make proto`. With --check only says what is stale."""

import argparse
import subprocess
import sys
from pathlib import Path

from generator import convert, crds, openapi, shapes, source, structs, tables
from google.protobuf import descriptor_pb2

ROOT = Path(__file__).resolve().parents[1]
GENERATED = Path("src/boatyard/model/generated")
CRDS = Path("deploy/crds")

# Kinds are switched on one by one: these get structs, conversions and a row in every table.
KINDS = (
    "Tenant",
    "Project",
    "HostType",
    "ClusterVersion",
    "ClusterTemplate",
    "Hub",
    "Cluster",
    "Event",
)
# Messages that are no kinds but are handled as structs too.
EXTRA = ("AuthnCapabilities",)
OUR_KINDS = ("Order", "Leftover", "Backup", "TemplateSource")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when something is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="where proto/ and src/ are")
    arguments = parser.parse_args()
    try:
        made = make(arguments.root)
    except (source.BadProto, convert.DifferentTypes) as error:
        print(error, file=sys.stderr)
        return 1
    stale = [path for path, content in made.items() if _differs(arguments.root / path, content)]
    for path in stale:
        print(f"{'stale' if arguments.check else 'wrote'} {path}")
        if not arguments.check:
            (arguments.root / path).parent.mkdir(parents=True, exist_ok=True)
            (arguments.root / path).write_bytes(made[path])
    if arguments.check and stale:
        print("run `make proto` and commit what it writes", file=sys.stderr)
        return 1
    return 0


def make(root: Path) -> dict[Path, bytes]:
    """Every generated file with its content; reads proto/ and nothing else."""
    wire = source.read(root / "proto")
    chosen = shapes.choose(wire, kinds=KINDS, extra=EXTRA)
    code = {
        GENERATED / "__init__.py": '"""Made by tools/generate.py from proto/; not edited."""\n',
        GENERATED / "osac.py": structs.write(chosen, source.PRIVATE),
        GENERATED / "boatyard.py": structs.write(chosen, source.OURS),
        GENERATED / "convert.py": convert.write(chosen),
        GENERATED / "projection.py": tables.write_projection(chosen, our_kinds=OUR_KINDS),
        GENERATED / "rest.py": tables.write_rest(wire),
    }
    made = {path: _formatted(text, path) for path, text in code.items()}
    descriptors = descriptor_pb2.FileDescriptorSet(file=wire.files)
    made[GENERATED / "wire.binpb"] = descriptors.SerializeToString(deterministic=True)
    made[GENERATED / "openapi.json"] = openapi.write(wire).encode()
    made |= {CRDS / name: text.encode() for name, text in crds.write(wire).items()}
    return made


def _formatted(text: str, path: Path) -> bytes:
    """As ruff would have it, so that formatting everything changes nothing."""
    ruff = Path(sys.executable).with_name("ruff")
    for command in (
        ["check", "--fix-only", "--select", "F401,I,UP"],
        ["format"],
    ):
        done = subprocess.run(
            [ruff, *command, "--quiet", "--stdin-filename", path, "-"],
            input=text,
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        if done.returncode != 0:
            raise source.BadProto(f"ruff does not accept the code made for {path}: {done.stderr}")
        text = done.stdout
    return text.encode()


def _differs(path: Path, content: bytes) -> bool:
    return not path.exists() or path.read_bytes() != content


if __name__ == "__main__":
    sys.exit(main())
