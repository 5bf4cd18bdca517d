"""The content of the simulated phone's apps: names, titles and sentences.

ASCII only: Pillow's built-in font draws an empty box for most other characters.
"""

from __future__ import annotations


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


FIRST_NAMES = _listed(
    "Aaron, Abigail, Adele, Amir, Anita, Arjun, Beatrice, Bruno, Carla, Cedric, Chloe, Dalia, Daniel, Diego, Elena, "
    "Elias, Emma, Farah, Felix, Fiona, Gavin, Grace, Hana, Hugo, Ines, Isaac, Ivy, Jasper, Joanna, Julia, Kaito, "
    "Karim, Laura, Leo, Lucia, Malik, Maria, Mateo, Maya, Nadia, Nathan, Nina, Oliver, Omar, Paula, Petra, Quentin, "
    "Rafael, Rosa, Samir, Sofia, Stella, Tariq, Thomas, Ursula, Victor, Wanda, Yara, Zoe"
)
LAST_NAMES = _listed(
    "Abbott, Almeida, Anders, Bauer, Bennett, Brandt, Castillo, Chan, Costa, Dalton, Delgado, Ericson, Fischer, "
    "Fontaine, Garcia, Hale, Hansen, Ibrahim, Ito, Jansen, Jordan, Keller, Kim, Kowalski, Lambert, Lindgren, Lopez, "
    "Marsh, Meyer, Mori, Nakamura, Nguyen, Novak, Okafor, Olsen, Park, Pereira, Quinn, Reyes, Rossi, Sato, Schmidt, "
    "Silva, Tanaka, Turner, Ueda, Vargas, Vogel, Walsh, Weber, Xu, Young, Zhang"
)
CITIES = _listed(
    "Accra, Amsterdam, Athens, Auckland, Bangkok, Berlin, Bogota, Boston, Brussels, Budapest, Cairo, Cape Town, "
    "Chicago, Copenhagen, Dakar, Delhi, Denver, Dubai, Dublin, Hanoi, Helsinki, Istanbul, Jakarta, Lagos, Lima, "
    "Lisbon, London, Madrid, Manila, Mexico City, Montreal, Mumbai, Nairobi, Osaka, Oslo, Paris, Prague, Quito, "
    "Reykjavik, Rome, Santiago, Seoul, Shanghai, Singapore, Stockholm, Sydney, Taipei, Tokyo, Toronto, Vienna, "
    "Warsaw, Zurich"
)
WEEKDAYS = _listed("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
MONTHS = _listed("January, February, March, April, May, June, July, August, September, October, November, December")
NOTES = (
    ("Grocery list", "Oat milk, eggs, two lemons, brown rice and a bag of spinach."),
    ("Trip to the lake", "Leave at eight on Saturday. Bring the tent, the stove and warm socks."),
    ("Book club", "Next meeting on the 14th. Read up to chapter nine."),
    ("Gift ideas", "A ceramic mug for Dad, a puzzle for Lena, tulips for Grandma."),
    ("Meeting summary", "Budget approved. Launch moves to May. Ask the print shop for a quote."),
    ("Piano practice", "Scales for ten minutes, then the second movement, slowly."),
    ("Garden plan", "Tomatoes by the wall, beans next to the fence, mint in a pot."),
    ("Recipe for soup", "Roast the pumpkin, add ginger and stock, blend until smooth."),
    ("Workout routine", "Three rounds: squats, push-ups, rowing. Rest one minute."),
    ("Movie night", "Vote between the space film and the old detective story."),
    ("Flat repairs", "Fix the kitchen tap, paint the hallway, order a new door handle."),
    ("Spanish words", "la ventana, el puente, la cuchara, el martillo, la nube"),
    ("Car service", "Oil change due in June. Ask about the noise from the left wheel."),
    ("Birthday party", "Twelve guests, lemon cake, music from the nineties."),
    ("Project ideas", "A bird feeder with a camera. A map of all the bakeries in town."),
    ("Packing list", "Passport, charger, rain jacket, two shirts, a good novel."),
)
NEW_NOTES = (
    ("Dentist questions", "Ask about the night guard"),
    ("Paint colours", "Sage green for the bedroom"),
    ("Bike parts", "New chain and brake pads"),
    ("Wifi at the cabin", "Network pine tree"),
    ("Podcast list", "History of maps, part two"),
    ("Seed order", "Basil, dill and marigold"),
    ("Marathon plan", "Long run on Sunday morning"),
    ("School forms", "Sign and return by Friday"),
)
ALARM_LABELS = ("Wake up", "Gym", "School run", "Take medicine", "Feed the cat", "Stand-up call", "Bus leaves", "Yoga", "Lunch")
ALARM_DAYS = ("Every day", "Weekdays", "Weekend", "Mon, Wed, Fri", "Tue, Thu", "Only once")
BRANDS = ("Alder", "Boreal", "Cobalt", "Dune", "Ember", "Fjord", "Grove", "Harbor", "Juno", "Kite", "Lumen", "Nimbus", "Orchid")
PRODUCTS = _listed(
    "Desk Lamp, Travel Mug, Wireless Mouse, Yoga Mat, Rain Jacket, Backpack, Coffee Grinder, Wall Clock, Running "
    "Shoes, Water Bottle, Loudspeaker, Notebook Set, Garden Gloves, Phone Stand, Table Fan, Wool Blanket, "
    "Chef Knife, Bike Helmet, Camping Tent, Toy Train, Hand Cream, Floor Cushion, Picture Frame, Headphones"
)
PRODUCT_TEXTS = (
    "Made from recycled material and tested for daily use. Comes with a two year warranty.",
    "A quiet favourite of our customers. Light, sturdy and easy to clean.",
    "Designed in a small workshop. Ships within two working days.",
    "New this season. Free returns within thirty days.",
)
CHAT_LINES = (
    "Are we still on for tonight?",
    "Running ten minutes late, sorry!",
    "Can you send me the address again?",
    "The photos turned out great.",
    "Thanks for your help yesterday.",
    "I left the keys with the neighbour.",
    "Do you want to have lunch on Thursday?",
    "The train was cancelled, taking the bus.",
    "Happy birthday! See you on Sunday.",
    "Did you find the blue folder?",
    "Let me know when you get home.",
    "The plumber comes at nine.",
    "Good luck with the exam!",
    "I can bring dessert.",
    "Sounds good to me.",
    "The parcel has arrived.",
)
NEW_MESSAGES = (
    "I will be there at six",
    "Please call me when you can",
    "The tickets are booked",
    "See you at the station",
    "Can we move it to Monday?",
    "Dinner is at our place tonight",
    "I found your umbrella",
    "Thank you for the flowers",
)
SUBJECTS = (
    ("Invoice for March", "Please find the invoice for March attached. Payment is due within fourteen days."),
    ("Team lunch on Friday", "We booked a table for eight at noon. Tell me if you cannot make it."),
    ("Your parcel is on its way", "Good news: your parcel left our warehouse today and arrives in two days."),
    ("Minutes of the board meeting", "Attached are the minutes. Send me your corrections until Wednesday."),
    ("Change of office hours", "Starting next month the front desk opens at nine and closes at five."),
    ("Weekend hiking plan", "The north trail is open again. Shall we meet at the car park at seven?"),
    ("Password changed", "The password of your account was changed. If this was not you, contact support."),
    ("New lease draft", "Here is the draft of the new lease. Page four has the changes we discussed."),
    ("Library books due soon", "Two of your books are due on the 21st. You can renew them online."),
    ("Quarterly report", "The numbers look better than expected. The slides are in the shared folder."),
    ("Concert tickets", "Your two tickets for the spring concert are confirmed. Doors open at half past six."),
    ("Parking permit renewal", "Your permit ends this month. Renew it to keep your space in the garage."),
    ("Photos from the workshop", "I uploaded the photos from the workshop. The group picture is my favourite."),
    ("Dental appointment", "This is a reminder of your appointment on Tuesday at half past ten."),
    ("Flight itinerary", "Your flight leaves at 07:40 from gate B12. Online check-in is open."),
    ("Survey about the cafeteria", "Tell us what you think of the new menu. It takes three minutes."),
    ("Job application", "Thank you for your application. We would like to invite you for an interview."),
    ("Broken heating", "The technician will come on Thursday between eight and ten."),
)
INCOMING_SUBJECTS = (
    ("Gate change", "Your flight now leaves from gate A7."),
    ("Security code for your account", "Your code is 482913. It is valid for ten minutes."),
    ("Delivery today", "The driver will reach you between two and four."),
    ("Class moved online", "Today's class is held online. The link is in the calendar."),
)
NEW_MAILS = (
    ("Holiday request", "I would like to take the last week of August off"),
    ("Broken printer", "The printer on the second floor jams again"),
    ("Notes from today", "We agreed on the second design"),
    ("Offer for the roof", "Please send me an offer until Friday"),
    ("Thank you", "It was a lovely evening"),
)
SONGS = _listed(
    "Amber Road, Back to the Harbor, Cold Coffee, Dancing Alone, Every Window, Falling Upwards, Glass Mountain, "
    "Half a Moon, Island Radio, June Rain, Kites, Long Way Down, Midnight Garden, Northern Line, Ocean Street, "
    "Paper Boats, Quiet Engine, River Stones, Slow Lightning, Tall Grass, Under the Bridge Lamp, Velvet Morning, "
    "Winter Sun, Yellow Bicycle, Zero Gravity"
)
ARTISTS = (
    "The Lanterns",
    "Mira Vale",
    "Echo Park Trio",
    "Nils Ember",
    "Blue Atlas",
    "Ana and the Tides",
    "DJ Marble",
    "Stone Choir",
)
PLAYLISTS = ("Morning run", "Road trip", "Deep focus", "Dinner party", "Rainy day", "Old favourites", "Party mix")
ONLINE_APPS = _listed(
    "Weather, Maps, News, Browser, Bank, Translate, Podcasts, Fitness, Travel, Rides, Video, Recipes, Sports, Stocks, Tickets"
)
MISSING_THINGS = {
    "Weather": "Check tomorrow's forecast in Weather",
    "Maps": "Show the way to the airport in Maps",
    "News": "Read the top story in News",
    "Bank": "Check the account balance in Bank",
    "Travel": "Find a hotel for tonight with Travel",
    "Video": "Play the newest film trailer in Video",
    "Recipes": "Look up a recipe for pancakes in Recipes",
    "Stocks": "Look at the price chart of gold in Stocks",
}
_SECTIONS = """
Network and internet | Wi-Fi, mobile, hotspot | Wi-Fi, Mobile data, Roaming, Hotspot, Data saver, Airplane mode
Connected devices | Bluetooth, pairing | Bluetooth, NFC, Nearby share, Android Auto, Printing
Apps | Default apps, permissions | Instant apps, Unused app cleanup, Unknown sources
Notifications | History, conversations | Notification history, Bubbles, Lock screen alerts, Icon badges, Snoozing
Battery | Saver, usage | Battery saver, Adaptive battery, Battery percentage, Fast charging
Storage | Space, clean-up | Smart storage, Trash bin, Storage alerts
Sound | Volume, vibration | Do not disturb, Vibrate for calls, Dial pad tones, Touch sounds, Charging sounds
Display | Theme, brightness | Dark theme, Adaptive brightness, Night light, Auto-rotate, Screen saver
Wallpaper and style | Colours, icons, grid | Themed icons, Colour by wallpaper, Wallpaper dimming
Accessibility | Screen reader, text | TalkBack, Magnification, Live captions, Mono audio, High contrast text, Large pointer
Security | Lock, fingerprint | Find my device, Smart lock, Fingerprint unlock, App pinning
Privacy | Permissions, activity | Camera access, Microphone access, Show passwords, Usage statistics, Clipboard alerts
Location | On, app access | Location services, Wi-Fi scanning, Emergency location, Location history
Safety | Medical info, alerts | Emergency alerts, Crash detection, Safety check
Passwords and accounts | Saved, autofill | Autofill service, Account sync, Password alerts
Digital wellbeing | Screen time, timers | Bedtime mode, Focus mode, Heads up, Screen time reminders
System | Languages, gestures | Gesture navigation, Automatic updates, Spell checker, One-handed mode
"""
SECTIONS = tuple(
    (name, subtitle, _listed(switches))
    for name, subtitle, switches in (line.split(" | ") for line in _SECTIONS.strip().splitlines())
)
"""Name, subtitle and switches of every section of the settings app."""
CHOICES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Display", "Screen timeout", ("15 seconds", "30 seconds", "1 minute", "5 minutes", "10 minutes")),
    ("Display", "Font size", ("Small", "Default", "Large", "Largest")),
    ("Sound", "Ringtone", ("Aurora", "Bells", "Cascade", "Drift", "Marimba")),
    ("Network and internet", "Preferred network", ("5G", "4G", "3G")),
    ("System", "Language", ("English", "Deutsch", "Italiano", "Suomi", "Nederlands")),
    ("Battery", "Charge limit", ("80 percent", "90 percent", "100 percent")),
    ("Privacy", "Delete activity", ("Never", "After 3 months", "After 18 months")),
)
"""Section, name and options of every setting that is chosen from a list."""
ABOUT = (
    ("Device name", ("Pine 7", "Orbit X2", "Mesa 5", "Lark Mini")),
    ("Android version", ("13", "14", "15")),
    ("Build number", ("QP1A.190711", "TQ3A.230805", "UP1A.231005")),
    ("Serial number", ("8XK2-4471", "9PL0-2290", "3RT7-1186")),
    ("Legal information", ("Licences",)),
)
