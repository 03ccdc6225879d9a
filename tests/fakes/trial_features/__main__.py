"""byok with one more feature, as if `hours/` lay in byok/features/."""

from pathlib import Path

from byok import features

features.__path__.append(str(Path(__file__).parent))
features.ROWS.append(
    features.FeatureRow(
        "hours",
        "hours.settings:HourSettings",
        "hours.counter:HourCounter",
        answers="requests by the hour",
        command="Count the requests of each hour since byok started.",
    )
)

from byok.cli import main  # noqa: E402 - the settings have a section for each row

main()
