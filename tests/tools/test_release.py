"""What a release says of the packages that it was built with."""

import json

from tools.release import requirements


def item(name: str, digest: str, **more: object) -> dict[str, object]:
    archive = {"hashes": {"sha256": digest}}
    address = f"https://files.example/{name}.whl"
    info = {"url": address, "archive_info": archive}
    metadata = {"name": name, "version": "1.2"}
    return {"metadata": metadata, "download_info": info, **more}


def test_requirements_have_versions_and_hashes_and_no_address() -> None:
    report = {"install": [item("beta", "bb"), item("Alpha", "aa"), item("byokd", "cc")]}
    report["install"][2]["requested"] = True
    assert requirements(json.loads(json.dumps(report))) == (
        "Alpha==1.2 --hash=sha256:aa\nbeta==1.2 --hash=sha256:bb\n"
    )
