"""Common things and scenes of photos, as words that may name a group of images."""

_PEOPLE = """
person, man, woman, child, baby, family, crowd, couple, portrait, selfie, group photo, face, hand,
wedding, birthday party, concert, parade, market, meeting, classroom, conference, dance,
graduation, funeral, protest, worker, doctor, nurse, soldier, police officer, firefighter, farmer,
cook, waiter, musician, artist, athlete, student, teacher, tourist, cyclist, swimmer, runner,
skier, climber, surfer
"""
_ANIMALS = """
dog, puppy, cat, kitten, horse, cow, pig, sheep, goat, donkey, rabbit, hamster, mouse, rat,
squirrel, hedgehog, fox, wolf, bear, polar bear, panda, deer, moose, antelope, bison, camel,
llama, giraffe, zebra, elephant, rhinoceros, hippopotamus, lion, tiger, leopard, cheetah, monkey,
gorilla, chimpanzee, orangutan, kangaroo, koala, bat, beaver, otter, badger, raccoon, skunk, seal,
sea lion, walrus, dolphin, whale, shark, fish, goldfish, salmon, ray, eel, octopus, squid,
jellyfish, starfish, crab, lobster, shrimp, shell, coral, snail, frog, toad, salamander, turtle,
tortoise, lizard, iguana, chameleon, snake, crocodile, dinosaur, bird, sparrow, robin, crow,
pigeon, dove, seagull, duck, goose, swan, chicken, rooster, turkey, peacock, parrot, owl, eagle,
hawk, vulture, flamingo, heron, stork, pelican, penguin, ostrich, hummingbird, woodpecker,
kingfisher, bee, wasp, fly, mosquito, ant, beetle, ladybug, butterfly, moth, caterpillar,
dragonfly, grasshopper, spider, scorpion, worm, bird nest, animal tracks
"""
_PLANTS = """
tree, palm tree, pine tree, bamboo, forest, bush, hedge, leaf, autumn leaves, grass, lawn, moss,
fern, cactus, succulent, houseplant, seedling, flower, rose, tulip, daisy, sunflower, dandelion,
lily, orchid, lavender, poppy, iris, daffodil, carnation, chrysanthemum, cherry blossom, water
lily, wildflowers, bouquet, mushroom, root, bark, seed, pine cone, vine, ivy, wheat, corn, rice,
cotton, hay, weeds
"""
_FOOD = """
apple, pear, peach, plum, apricot, cherry, strawberry, raspberry, blueberry, blackberry, grapes,
orange, lemon, lime, grapefruit, banana, pineapple, mango, papaya, kiwi, melon, watermelon,
coconut, fig, date, pomegranate, avocado, olive, tomato, potato, onion, garlic, carrot, beet,
radish, cucumber, zucchini, pumpkin, eggplant, bell pepper, chili pepper, cabbage, lettuce,
spinach, broccoli, cauliflower, asparagus, artichoke, beans, peas, lentils, nuts, almond, walnut,
hazelnut, peanut, chestnut, bread, baguette, croissant, bagel, pretzel, toast, sandwich,
hamburger, hot dog, pizza, pasta, noodles, soup, salad, sushi, taco, burrito, curry, stew, steak,
roast, sausage, bacon, ham, egg, omelet, pancake, waffle, cheese, butter, yogurt, milk, cake,
cupcake, pie, cookie, donut, chocolate, candy, ice cream, pudding, jam, honey, cereal, french
fries, potato chips, popcorn, coffee, tea, juice, soda, beer, wine, cocktail, water bottle,
breakfast, dinner table, fast food, dessert, fruit, vegetables, spices
"""
_THINGS = """
chair, armchair, sofa, table, desk, bed, pillow, blanket, wardrobe, shelf, bookcase, cabinet,
drawer, mirror, lamp, chandelier, candle, curtain, carpet, rug, clock, vase, picture frame,
painting, sculpture, statue, mask, doll, teddy bear, toy, toy car, puzzle, board game, playing
cards, dice, chess, balloon, kite, swing, slide, trampoline, book, magazine, newspaper, notebook,
letter, envelope, map, poster, sign, flag, ticket, stamp, coin, banknote, pen, pencil, brush,
scissors, stapler, tape, box, package, bag, backpack, suitcase, handbag, wallet, umbrella,
glasses, sunglasses, watch, ring, necklace, earrings, bracelet, crown, hat, cap, helmet, scarf,
gloves, tie, shirt, t-shirt, sweater, hoodie, jacket, coat, suit, dress, skirt, trousers, jeans,
shorts, socks, shoes, sneakers, boots, sandals, high heels, underwear, swimsuit, uniform, costume,
kimono, textile, button, zipper, needle, yarn, basket, bucket, bottle, jar, can, cup, mug, glass,
wine glass, plate, bowl, fork, knife, spoon, pan, pot, kettle, teapot, toaster, oven, microwave,
refrigerator, dishwasher, washing machine, vacuum cleaner, iron, fan, heater, air conditioner,
sink, toilet, bathtub, shower, towel, soap, toothbrush, toilet paper, trash can, garbage,
recycling, broom, mop, hammer, screwdriver, wrench, pliers, saw, drill, axe, shovel, rake, ladder,
rope, chain, nail, screw, bolt, gear, pipe, wire, cable, plug, switch, light bulb, battery, solar
panel, antenna, circuit board, computer, laptop, keyboard, computer mouse, monitor, printer,
server, hard disk, tablet, smartphone, telephone, camera, lens, tripod, television, radio,
speaker, headphones, microphone, guitar, piano, violin, drum, flute, trumpet, saxophone,
accordion, ball, football, basketball, baseball, tennis racket, golf club, hockey stick,
skateboard, skis, snowboard, surfboard, dumbbell, treadmill, tent, sleeping bag, campfire, fishing
rod, gun, sword, medal, trophy, pills, syringe, stethoscope, microscope, telescope, thermometer,
x-ray, crutch, wheelchair, stroller, crib, logo, diagram, chart, screenshot, document,
handwriting, receipt, barcode, drawing, cartoon, tattoo, graffiti
"""
_TRAFFIC = """
car, sports car, taxi, police car, ambulance, fire truck, van, pickup truck, truck, trailer, bus,
school bus, tram, train, locomotive, subway, motorcycle, scooter, bicycle, tricycle, tractor,
excavator, bulldozer, crane, forklift, tank, airplane, airliner, fighter jet, helicopter, hot air
balloon, drone, rocket, satellite, parachute, boat, sailboat, canoe, kayak, ferry, yacht, ship,
cruise ship, container ship, submarine, anchor, wheel, tire, engine, dashboard, license plate,
traffic light, stop sign, speed limit sign, road sign, crosswalk, parking meter, gas station,
railroad track, traffic jam, car accident, shipwreck
"""
_SCENES = """
mountain, hill, valley, canyon, cliff, cave, volcano, desert, sand dune, rock, island, beach,
coast, ocean, wave, reef, lake, river, stream, waterfall, pond, swamp, glacier, iceberg, snow,
ice, frost, field, meadow, farmland, orchard, vineyard, garden, park, playground, path, road,
highway, street, alley, intersection, bridge, tunnel, dam, canal, harbor, pier, lighthouse,
airport, runway, train station, bus stop, parking lot, garage, factory, warehouse, construction
site, power plant, wind turbine, power lines, oil rig, mine, quarry, landfill, barn, farm,
greenhouse, windmill, fence, gate, wall, brick wall, door, window, stairs, elevator, escalator,
roof, chimney, balcony, porch, house, cottage, cabin, hut, villa, apartment building, skyscraper,
office building, tower, castle, palace, fort, ruins, temple, church, mosque, synagogue, monastery,
cemetery, monument, fountain, school, university, library, museum, theater, cinema, stadium, gym,
swimming pool, hospital, laboratory, pharmacy, prison, courthouse, bank, post office, hotel,
restaurant, cafe, bar, kitchen, dining room, living room, bedroom, bathroom, nursery, office,
corridor, attic, basement, shop, supermarket, bakery, clothing store, bookstore, shopping mall,
street market, fairground, zoo, aquarium, casino, nightclub, stage, village, suburb, city,
skyline, city at night, aerial view, satellite image, sky, clouds, sunset, sunrise, rainbow,
lightning, storm, tornado, fog, rain, flood, fire, smoke, explosion, fireworks, moon, stars,
galaxy, planet, northern lights, underwater, football field, golf course, tennis court, race
track, ski slope, campsite, picnic, texture, pattern, abstract
"""


def default_vocabulary() -> list[str]:
    topics = (_PEOPLE, _ANIMALS, _PLANTS, _FOOD, _THINGS, _TRAFFIC, _SCENES)
    return parse_vocabulary(", ".join(topics).replace("\n", " "))


def parse_vocabulary(text: str) -> list[str]:
    """Split a text at commas and ends of lines; each word once, in the order of the text."""
    words = (" ".join(word.split()) for line in text.splitlines() for word in line.split(","))
    return list(dict.fromkeys(word for word in words if word))


def describe(word: str) -> str:
    """Return the text that a CLIP model compares with images: its captions are sentences."""
    return f"a photo of {word}"
