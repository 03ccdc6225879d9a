"""A question that names a format is about files of that format."""

from pathlib import Path

import pytest

from byok.search.retrieval.formats import named_formats
from byok.search.retrieval.retriever import Retriever
from byok.search.retrieval.ripgrep import Ripgrep
from tests.fakes.engines import indexed, project


@pytest.mark.parametrize(
    ("question", "meant", "other"),
    [
        ("Dockerfile of the worker", "ops/Dockerfile.worker", "src/docker.py"),
        ("docker compose services", "docker-compose.yml", "app.yaml"),
        ("GitHub workflow for releases", ".github/workflows/release.yml", "release.py"),
        ("terraform of the bucket", "infra/main.tf", "src/main.ts"),
        ("helm chart values", "charts/api/values.yaml", "src/values.go"),
        ("templates of the helm chart", "charts/api/job.tpl", "src/charts/pie.ts"),
        ("Protocol Buffers of users", "api/user.proto", "user_pb2.py"),
        ("the SQL of a migration", "db/migrations/0001.up.sql", "src/sql.go"),
        ("CSS of the header", "web/header.scss", "web/header.tsx"),
        ("template with the login form", "views/login.html.j2", "views/login.py"),
        ("XML template of the sitemap", "sitemap.xml", "sitemap.go"),
        ("CMake options", "deps/CMakeLists.txt", "options.c"),
        ("Makefile target for docs", "Makefile", "make.py"),
        ("scripts in package.json", "web/package.json", "web/data.json"),
        ("notebook with the plots", "plots.ipynb", "plots.py"),
        ("which linters are on", "pyproject.toml", "src/linter.py"),
        ("checkstyle configuration", "config/checkstyle/checkstyle.xml", "pom.xml"),
        ("rules of eslint", "web/.eslintrc.json", "web/data.json"),
        ("CI configuration of the tests", "appveyor.yml", "src/ci.py"),
        ("migration of the users", "db/migrate/1_users.rb", "app/users.rb"),
        ("CI tests on Windows", ".github/workflows/build.yml", "test/windows.py"),
        ("form to ask for a new feature", ".github/ISSUE_TEMPLATE/f.md", "form.vue"),
        ("unit that starts the server", "systemd/web.service", "src/unit.rs"),
        ("kubernetes manifest", "k8s/web.yaml", ".github/workflows/web.yml"),
        ("icon on the home screen", "public/app.webmanifest", "src/icon.ts"),
        ("German translation of the menu", "src/lang/de-DE.json", "src/lang/fr.json"),
        ("where are the texts in French", "res/values-fr/a.xml", "res/values/a.xml"),
        ("labels of buttons in Italian", "locale/it/LC_MESSAGES/a.po", "src/it.py"),
        ("日语翻译", "Resources/ja.lproj/Main.strings", "locales/zh.json"),
        ("colours of the dark theme", "web/dark.scss.erb", "web/theme.tsx"),
        ("layout of the first screen", "res/layout/main.xml", "Layout.kt"),
        ("script for the health check", "docker/health.sh", "src/script.js"),
        ("example configuration of mail", "config.example.toml", "mail.toml"),
        ("sample settings", ".env.sample", "settings.py"),
        ("base image of the worker", "docker/worker.dockerfile", "docker/worker.py"),
        ("checks that run every night on GitHub", ".github/workflows/n.yml", "n.py"),
        ("text of the welcome mail", "views/welcome/hello.text.erb", "welcome.rb"),
        ("where is the man page", "doc/tool.1", "doc/tool.md"),
        ("bug report form", ".github/ISSUE_TEMPLATE/bug.yml", "src/bug_form.ts"),
        ("how often dependency updates come", ".github/dependabot.yml", "update.py"),
        ("recipe of the snap", "snap/snapcraft.yaml", "snap/snap.py"),
        ("how the Debian package is made", "debian/control", "src/debian.py"),
        ("systemd hardening", "init/tool.service", "src/service.ts"),
        ("what permissions does the app ask for", "app/AndroidManifest.xml", "App.kt"),
        ("dev container with Ruby", ".devcontainer/devcontainer.json", "dev.json"),
        ("proguard exceptions", "app/proguard-rules.pro", "app/rules.kt"),
        ("German translations", "src/locales/de.json", "src/german.ts"),
        ("Android translations", "res/values-de/strings.xml", "res/layout/a.xml"),
        ("查找Dockerfile的内容", "Dockerfile", "docker.py"),
        ("登录页面的模板", "login.html", "login.py"),
        ("Migrationen der Nutzer", "migrations/0001.py", "users.py"),
        ("plantilla de inicio de sesión", "login.html.j2", "login.py"),
        ("feuille de style de l'en-tête", "header.css", "header.tsx"),
        ("リリースのワークフロー", ".github/workflows/release.yml", "release.py"),
        ("шаблоны страниц", "page.tmpl", "page.go"),
    ],
)
def test_a_format_that_is_named_means_its_files(
    question: str, meant: str, other: str
) -> None:
    formats = named_formats(question)
    assert formats is not None
    assert formats.search(meant)
    assert not formats.search(other)


@pytest.mark.parametrize(
    "question",
    [
        *("", "where is the session signed?", "cssText", "contemplate"),
        *("use less memory", "form with a date", "permissions of a user"),
        *("user service", "take a snapshot", "man in the middle"),
        *("polish the texts", "German umlauts", "split Chinese words"),
    ],
)
def test_a_question_without_a_format_names_none(question: str) -> None:
    assert named_formats(question) is None


async def test_texts_in_a_language_are_found_by_its_name(tmp_path: Path) -> None:
    greeting = {"de": "Guten Tag", "fr": "Bonjour", "nl": "Goedendag"}
    root = project(
        tmp_path / "shop",
        greeting__py="def greeting(user):\n    return translated(user.language)\n",
        **{
            f"locales___{code}__json": f'{{"greeting": "{said}"}}\n'
            for code, said in greeting.items()
        },
    )
    async with indexed(tmp_path / "e", root) as made:
        retriever = Retriever(made, Ripgrep(lambda: None))
        found = await retriever.search("French translation of the greeting")
    assert found["hits"][0]["path"] == "locales/fr.json"


async def test_a_file_of_the_format_comes_before_code_about_it(tmp_path: Path) -> None:
    root = project(
        tmp_path / "shop",
        worker__py=(
            "def build_worker_image(docker):\n"
            '    """Build the docker image of the worker, install its packages."""\n'
            "    return docker.build('worker', install_packages=True)\n"
        ),
        Dockerfile="FROM debian\nRUN apt-get install -y worker\n",
    )
    async with indexed(tmp_path / "e", root) as made:
        retriever = Retriever(made, Ripgrep(lambda: None))
        found = [
            [hit["path"] for hit in (await retriever.search(question))["hits"]]
            for question in ("Dockerfile that installs the worker", "install a worker")
        ]
    assert found == [["Dockerfile", "worker.py"], ["worker.py", "Dockerfile"]]
