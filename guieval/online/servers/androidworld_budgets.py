"""The step budgets of AndroidWorld's tasks, which its server does not state: ten times a task's complexity.

Source: google-research/android_world @ d9c569f, ``android_world/suite_utils.py`` (``_allocate_step_budget``:
``int(10 * complexity)``); complexities of 91 types from the classes in ``android_world/task_evals``, of the 25 that look
something up from ``proto/tasks.textproto``.
"""

from __future__ import annotations

_TYPES: dict[float, str] = {
    1: """
        CameraTakePhoto CameraTakeVideo ClockStopWatchPausedVerify ClockStopWatchRunning ClockTimerEntry
        ExpenseDeleteSingle MarkorCreateFolder MarkorDeleteNewestNote MarkorDeleteNote NotesIsTodo
        NotesMeetingAttendeeCount NotesRecipeIngredientCount NotesTodoItemCount OpenAppTaskEval
        RecipeDeleteDuplicateRecipes RecipeDeleteSingleRecipe SimpleCalendarAnyEventsOnDate
        SimpleCalendarEventOnDateAtTime SimpleCalendarEventsInNextWeek SimpleCalendarEventsInTimeRange
        SimpleCalendarEventsOnDate SimpleCalendarFirstEventAfterStartTime SimpleCalendarLocationOfEvent
        SimpleCalendarNextEvent SimpleCalendarNextMeetingWithPerson SportsTrackerActivitiesCountForWeek
        SportsTrackerActivityDuration SportsTrackerLongestDistanceActivity
        SportsTrackerTotalDurationForCategoryThisWeek SystemBluetoothTurnOff SystemBluetoothTurnOffVerify
        SystemBluetoothTurnOn SystemBluetoothTurnOnVerify SystemBrightnessMax SystemBrightnessMaxVerify
        SystemBrightnessMin SystemBrightnessMinVerify SystemCopyToClipboard SystemWifiTurnOff SystemWifiTurnOffVerify
        SystemWifiTurnOn SystemWifiTurnOnVerify TasksCompletedTasksForDate TasksDueNextWeek TasksDueOnDate
        TasksHighPriorityTasks TasksHighPriorityTasksDueOnDate TasksIncompleteTasksOnDate
    """,
    1.2: """
        AudioRecorderRecordAudio ContactsAddContact ContactsNewContactDraft ExpenseAddSingle ExpenseDeleteDuplicates
        MarkorAddNoteHeader MarkorChangeNoteContent MarkorEditNote SimpleCalendarDeleteEventsOnRelativeDay
        SimpleCalendarDeleteOneEvent SimpleSmsReply SimpleSmsReplyMostRecent SimpleSmsResend SimpleSmsSend
        SimpleSmsSendClipboardContent
    """,
    1.3: "OsmAndFavorite",
    1.4: """
        MarkorCreateNoteFromClipboard MarkorDeleteAllNotes MarkorMoveNote SimpleCalendarDeleteEvents
    """,
    1.6: """
        MarkorCreateNote SaveCopyOfReceiptTaskEval
    """,
    1.8: """
        ExpenseDeleteDuplicates2 MarkorCreateNoteAndSms MarkorTranscribeReceipt SimpleDrawProCreateDrawing
        SimpleSmsSendReceivedAddress
    """,
    2: """
        AudioRecorderRecordAudioWithFileName BrowserDraw BrowserMaze ExpenseDeleteMultiple FilesMoveFile
        MarkorTranscribeVideo OsmAndMarker RecipeDeleteSingleWithRecipeWithNoise SportsTrackerActivitiesOnDate
        SportsTrackerTotalDistanceForCategoryOverInterval TurnOffWifiAndTurnOnBluetooth TurnOnWifiAndOpenApp
    """,
    2.2: """
        BrowserMultiply FilesDeleteFile
    """,
    2.4: """
        RecipeAddSingleRecipe RecipeDeleteDuplicateRecipes2 RecipeDeleteMultipleRecipes RetroCreatePlaylist
    """,
    2.8: "VlcCreatePlaylist",
    3: "RetroPlaylistDuration",
    3.2: "RetroPlayingQueue",
    3.4: """
        ExpenseDeleteMultiple2 RecipeDeleteDuplicateRecipes3 RecipeDeleteMultipleRecipesWithNoise
        SimpleCalendarAddOneEvent SimpleCalendarAddOneEventInTwoWeeks SimpleCalendarAddOneEventRelativeDay
        SimpleCalendarAddOneEventTomorrow SimpleCalendarAddRepeatingEvent
    """,
    4: "RecipeDeleteMultipleRecipesWithConstraint",
    4.8: "VlcCreateTwoPlaylists",
    5: "RetroSavePlaylist",
    6: """
        ExpenseAddMultiple ExpenseAddMultipleFromGallery ExpenseAddMultipleFromMarkor RecipeAddMultipleRecipes
        RecipeAddMultipleRecipesFromImage RecipeAddMultipleRecipesFromMarkor RecipeAddMultipleRecipesFromMarkor2
    """,
    7.8: "MarkorMergeNotes",
    12: "OsmAndTrack",
}
COMPLEXITIES: dict[str, float] = {name: complexity for complexity, names in _TYPES.items() for name in names.split()}
"""The complexity of a task, by its type."""
BUDGETS: dict[str, int] = {name: int(10 * complexity) for name, complexity in COMPLEXITIES.items()}
"""The most steps of a task, by its type."""
