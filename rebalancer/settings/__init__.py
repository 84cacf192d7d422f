"""Settings: environment variables ``REBALANCER_*`` to one frozen value, grouped by subject.

``load_settings`` takes the environment as a value; nothing here looks at the process's own. ``load_policy`` finds the
policy that the settings point at, ``reference_rows`` lists every setting for the documentation.
"""

from rebalancer.settings.environment import Settings, load_settings, setting_names
from rebalancer.settings.policy import load_policy
from rebalancer.settings.reference import SettingRow, reference_rows
from rebalancer.settings.windows import WindowSetting

__all__ = [
    "SettingRow",
    "Settings",
    "WindowSetting",
    "load_policy",
    "load_settings",
    "reference_rows",
    "setting_names",
]
