"""Names that are private, and source files that only sound so."""

import time

import pytest

from byok.search.index.files.secret_names import is_secret

PRIVATE = """
    .env .ENV .env.local .env.production .env-prod .env.bak .env~ config/prod.env .envrc
    .env/x.py .envs/.production/.django .dev.vars .env.vault .env.example.local
    id_rsa id_rsa.bak id_ed25519.pub .ssh/config deploy_rsa ssh_host_ed25519_key
    a.pem a/b.KEY c.pfx d.p12 e.p8 f.jks g.keystore h.crt i.cer j.der k.ppk l.keytab
    m.kdbx n.ovpn o.agekey p.rdp q.har server.key.old cert.pem.bak.old
    .git .git/config sub/.git/HEAD .hg/store .svn/entries .gnupg/x .aws/credentials
    .azure/a .kube/config .docker/config.json .config/gh/hosts.yml .vscode-server/x
    .netrc _netrc .netrc.gpg .pypirc .npmrc .git-credentials .pgpass .htpasswd
    site.htpasswd .vault-token .vault_pass .token .secrets .bash_history .boto
    credentials credentials.json credentials-prod.json aws_credentials.csv
    credentials.toml service-account.json service_account_key.json
    client_secret_123.json secrets.yaml k8s-secret.yml my-secrets.toml
    secrets.properties
    x-firebase-adminsdk-1.json accessKeys.csv
    terraform.tfstate terraform.tfstate.backup prod.tfvars prod.tfvars.json .terraform/x
    app.sqlite app.sqlite3 app.sqlite-wal app.db app.db-wal app.db3
    kubeconfig kubeconfig.yaml prod.kubeconfig wp-config.php local.settings.json
    .augment-guidelines wg0.conf cookies.txt kaggle.json
    aws_credentials aws-credentials .openai .anthropic_key .openai_api_key
    openai_api_key api_keys.txt rclone.conf .m2/settings.xml NuGet.Config
    .m2/settings-security.xml
    .gradle/gradle.properties .vercel/auth.json .codex/auth.json .composer/auth.json
    containers/auth.json env.local env.production .flaskenv .smbcredentials
    .smb-credentials local.properties
"""
ORDINARY = """
    .env.example .env.sample .env.template .env.dist .env.local.example .env-example
    example.env config/template.env .env.d.ts .envrc.example .dev.vars.example
    env.py environment.ts environment.prod.ts vite-env.d.ts env.d.ts .environment/x.py
    secrets.py secret_names.py secrets.go token.ts tokens.json Token.json password.rb
    credentials.go Credentials.java credentials_test.go credentials.tsx credentials/a.py
    keyring.py keystore.go key.py keys.ts pem.py crt.c certs/readme.md secrets/main.tf
    id_generator.py rsa.py test_rsa.py ssh_config.go kubeconfig.go kubeconfig/a.go
    docker/config.json
    .docker/nginx.conf config.json database.sqlite.ts schema.sql db.py db/migrate.rb
    app.db/readme.md main.tf tfstate.go terraform/main.tf wp-config-sample.php
    history.py bash_history.go .gitignore .gitattributes .github/workflows/ci.yml
    .vscode/settings.json .eslintrc.json package.json tsconfig.json .npmignore
    .bypass.py git/config aws/credentials.py service_account.py passwords.php
    settings.xml gradle.properties api_keys.py access_key.go keys.json .keystone.js
    locales/en/auth.json lang/auth.json src/auth.json env.js env.example env.ts
    create_credentials get-credentials.sh openai.py anthropic/client.py properties.local
    \u0441\u0435\u043a\u0440\u0435\u0442\u044b.txt
    \u03ba\u03bb\u03b5\u03b9\u03b4\u03af.md
    src/token/token.go bak old.py a.bak copy.ts .prettierrc .dockerignore Dockerfile
"""


@pytest.mark.case("B73")
@pytest.mark.parametrize("path", PRIVATE.split())
def test_a_private_name_is_a_secret_in_any_case_and_folder(path: str) -> None:
    assert is_secret(path)
    assert is_secret(path.upper())
    assert is_secret(f"a/b c/{path}")


@pytest.mark.parametrize("path", ORDINARY.split())
def test_an_ordinary_name_is_no_secret(path: str) -> None:
    assert not is_secret(path)
    assert not is_secret(f"a/{path}")


@pytest.mark.parametrize("name", [".env.", ".env ", "id_rsa.", "a.pem. ."])
def test_what_windows_drops_from_a_name_hides_nothing(name: str) -> None:
    assert is_secret(name)


@pytest.mark.case("B73")
@pytest.mark.parametrize(
    "name",
    [
        ".env .txt",
        " .env",
        ".en v",
        ".\u0435nv",
        ".env\u200b",
        "\u2060.env.local",
        ".\u200denv",
        "id_r\u0455a",
        "\uff0e\uff45\uff4e\uff56",
        "\u0441r\u0435dentials.json",
        "\u03bfpenai_api_key",
        "deploy\U000e0041.pem",
        ".\u0430ws/config",
    ],
)
def test_a_name_that_only_looks_like_a_private_one_is_one(name: str) -> None:
    assert is_secret(name)
    assert is_secret(f"a/{name}")


@pytest.mark.case("B73")
def test_secret_name_of_composer_counts_at_the_root_only() -> None:
    assert is_secret("auth.json")
    assert is_secret("AUTH.JSON")
    assert not is_secret("backend/lang/de/auth.json")


@pytest.mark.parametrize(
    "name", ["credentials", "a.key", "secrets.yaml", "a.db", ".openai", "auth.json"]
)
def test_names_of_files_do_not_hide_folders(name: str) -> None:
    assert not is_secret(name, is_dir=True)
    assert not is_secret(f"{name}/main.py")


def test_the_user_can_allow_names_paths_and_folders() -> None:
    allowed = ("*.pem", "/config/prod.env", ".kube/", ".aws/config")
    assert not is_secret("a/b.pem", allowed)
    assert not is_secret("Config/PROD.env", allowed)
    assert is_secret("other/config/prod.env", allowed)
    assert not is_secret(".kube/config", allowed)
    assert not is_secret(".aws", allowed, is_dir=True)
    assert not is_secret(".aws/config", allowed)
    assert is_secret(".aws/credentials", allowed)


@pytest.mark.parametrize("path", [".git/config", "a/.hg/hgrc", ".svn"])
def test_secret_names_of_version_control_cannot_be_allowed(path: str) -> None:
    assert is_secret(path, ("*", "**", path, ".git/"))


def test_copies_of_byoks_own_files_are_private() -> None:
    copies = (
        *(".config/byok/config.toml", "home/.local/state/byok/log/byok.log"),
        *("Library/Application Support/byok/state/token", "usb/state/token"),
        *(
            "old/owner-secret",
            "old/dashboard-token",
            "x/METRICS-TOKEN",
            "data/vault.json",
        ),
    )
    assert [path for path in copies if not is_secret(path)] == []
    assert not is_secret("byok/config.toml")  # of a project of that name


def test_a_long_name_does_not_stall() -> None:
    names = ["_secret" * 36, ".env" + "-example" * 30, "a_rsa" * 50, "." + "a_" * 120]
    began = time.process_time()
    for name in names:
        for number in range(50):
            is_secret(f"{name}{number}")
    assert time.process_time() - began < 1
