"""The settings in a new HOME: windows fill the screen, nothing blinks or fades, no text depends on the time."""

from __future__ import annotations

_OPENBOX = """<?xml version="1.0"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
<desktops><number>1</number><popupTime>0</popupTime></desktops>
<focus><focusNew>yes</focusNew></focus>
<theme><name>Clearlooks</name><animateIconify>no</animateIconify></theme>
<keyboard>
<keybind key="A-Tab"><action name="NextWindow"><dialog>none</dialog><finalactions><action name="Focus"/><action name="Raise"/>
<action name="Unshade"/></finalactions></action></keybind>
<keybind key="A-F4"><action name="Close"/></keybind>
</keyboard>
<mouse>
<context name="Client">
<mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind></context>
<context name="Titlebar"><mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
<mousebind button="Left" action="Drag"><action name="Move"/></mousebind></context>
<context name="Close"><mousebind button="Left" action="Click"><action name="Close"/></mousebind></context>
<context name="Maximize"><mousebind button="Left" action="Click"><action name="ToggleMaximize"/></mousebind></context>
<context name="Iconify"><mousebind button="Left" action="Click"><action name="Iconify"/></mousebind></context>
</mouse>
<applications><application type="normal"><maximized>yes</maximized></application></applications>
</openbox_config>
"""
_GTK = """[Settings]
gtk-cursor-blink=0
gtk-enable-animations=0
gtk-font-name=DejaVu Sans 11
gtk-recent-files-enabled=0
"""
_APPLICATIONS = """[org/gnome/gedit/preferences/ui]
statusbar-visible=false

[org/gnome/gedit/preferences/editor]
wrap-last-split-mode='word'
"""
_XTERM = """XTerm*faceName: DejaVu Sans Mono
XTerm*faceSize: 12
XTerm*cursorBlink: false
XTerm*selectToClipboard: true
"""
_OFFICE_SETTINGS = {
    "Setup/Product": {"ooSetupLastVersion": "99.9", "LastTimeDonateShown": "4102444800"},
    "Office.Common/Misc": {"FirstRun": "false", "ShowTipOfTheDay": "false", "UseLocking": "false"},
    "Office.Common/Save/Document": {"WarnAlienFormat": "false"},
    "Office.Common/Security/Scripting": {"MacroSecurityLevel": "3", "DisableMacrosExecution": "true"},
    "Office.Recovery/AutoSave": {"Enabled": "false"},
    "Office.Recovery/RecoveryInfo": {"Enabled": "false"},
}
"""No dialog comes unasked, no file is locked or recovered, and no macro of a document runs."""
_OFFICE = "\n".join(
    (
        '<oor:items xmlns:oor="http://openoffice.org/2001/registry">',
        *(
            f'<item oor:path="/org.openoffice.{path}"><prop oor:name="{key}" oor:op="fuse"><value>{value}</value></prop></item>'
            for path, settings in _OFFICE_SETTINGS.items()
            for key, value in settings.items()
        ),
        "</oor:items>",
    )
)
OFFICE_PROFILE = ".config/libreoffice/4/user/registrymodifications.xcu"
KEYFILE = ".config/glib-2.0/settings/keyfile"
"""The file in which applications keep their settings."""
TRASH = ".local/share/Trash/"
SETTINGS = {
    **dict.fromkeys(
        (".config/", ".config/openbox/", ".config/gtk-3.0/", ".config/glib-2.0/", ".config/glib-2.0/settings/"), ""
    ),
    **dict.fromkeys((".config/libreoffice/", ".config/libreoffice/4/", ".config/libreoffice/4/user/"), ""),
    OFFICE_PROFILE: _OFFICE,
    **dict.fromkeys((".config/libfm/", ".config/pcmanfm/", ".config/pcmanfm/default/", ".local/", ".local/share/"), ""),
    ".config/openbox/rc.xml": _OPENBOX,
    ".config/gtk-3.0/settings.ini": _GTK,
    ".config/libfm/libfm.conf": "[config]\nsingle_click=0\nuse_trash=1\nconfirm_del=0\nconfirm_trash=0\n",
    KEYFILE: _APPLICATIONS,
    ".Xdefaults": _XTERM,
    ".bashrc": "PS1='\\w\\$ '\nHISTFILE=\n",
}
APPLICATIONS = {
    "Text Editor": "gedit --standalone",
    "Files": "pcmanfm",
    "Terminal": "xterm",
    "Calculator": "mate-calc",
    "LibreOffice Calc": "soffice --norestore --nologo --calc",
    "LibreOffice Writer": "soffice --norestore --nologo --writer",
}
"""The applications by the names of their menu entries, with their commands."""
NAMES = {
    **{name.lower(): name for name in APPLICATIONS},
    **{"gedit": "Text Editor", "editor": "Text Editor", "文本编辑器": "Text Editor"},
    **{"pcmanfm": "Files", "file manager": "Files", "文件管理器": "Files", "文件": "Files"},
    **{"xterm": "Terminal", "终端": "Terminal"},
    **{"mate-calc": "Calculator", "计算器": "Calculator"},
    **dict.fromkeys(("calc", "localc", "spreadsheet", "电子表格"), "LibreOffice Calc"),
    **dict.fromkeys(("writer", "lowriter", "word processor", "文字处理"), "LibreOffice Writer"),
}
"""Other names of the applications, in lower case."""
