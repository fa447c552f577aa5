import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Suppressed;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Three queries of Nexmark by Kafka Streams. `load BOOTSTRAP TOPIC FILE` sends a file's events, whose fields have tabs
 * between them: `order`, `time`, and those of a bid or an auction. `run QUERY` reads its standard input: a line
 * `PROPERTIES OUT` starts the query with the properties of a file and the topic of its rows; an empty line ends it.
 */
public final class NexmarkStreams {
    private static final int NUMBERS_OF_BID = 5, NUMBERS_OF_AUCTION = 7;

    /** An event: its numbers come first, its texts follow. */
    record Event(long[] numbers, String[] texts) {}

    /** A bidder and an auction. */
    record Pair(long bidder, long auction) {}

    // Of a bid: order, auction, bidder, price, time; channel, url, extra.
    private static final int ORDER = 0, AUCTION = 1, BIDDER = 2, PRICE = 3, TIME = 4;
    // Of an auction: id, initial_bid, reserve, time, expires, seller, category; item_name, description, extra.
    private static final int CATEGORY = 6;

    public static void main(String[] words) throws Exception {
        if (words[0].equals("load")) {
            load(words[1], words[2], Path.of(words[3]), words[2].equals("bid") ? NUMBERS_OF_BID : NUMBERS_OF_AUCTION);
        } else {
            run(words[1]);
        }
    }

    private static void load(String bootstrap, String topic, Path file, int numbers) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", bootstrap, "linger.ms", "50");
        Serde<Event> events = events(numbers);
        int time = numbers == NUMBERS_OF_BID ? TIME : 3;
        try (var producer = new KafkaProducer<>(properties, new LongSerializer(), events.serializer());
                var lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] fields = line.split("\t", -1);
                Event event = new Event(new long[numbers], new String[fields.length - numbers]);
                for (int place = 0; place < fields.length; place++) {
                    if (place < numbers) {
                        event.numbers()[place] = Long.parseLong(fields[place]);
                    } else {
                        event.texts()[place - numbers] = fields[place];
                    }
                }
                producer.send(new ProducerRecord<>(topic, null, event.numbers()[time], event.numbers()[0], event));
            }
        }
    }

    private static void run(String query) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        KafkaStreams streams = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (streams == null) {
                String[] words = line.split(" ");
                var properties = new Properties();
                try (var reader = Files.newBufferedReader(Path.of(words[0]))) {
                    properties.load(reader);
                }
                var builder = new StreamsBuilder();
                rows(query, builder).to(words[1], Produced.with(Serdes.String(), Serdes.String()));
                streams = new KafkaStreams(builder.build(properties), properties);
                streams.setUncaughtExceptionHandler(error -> {
                    error.printStackTrace();
                    Runtime.getRuntime().halt(1);
                    return null;
                });
                streams.start();
                System.out.println("started");
            } else {
                streams.close();
                streams = null;
                System.out.println("ended");
            }
        }
        System.exit(0);
    }

    private static KStream<String, String> rows(String query, StreamsBuilder builder) {
        var bid = Consumed.with(Serdes.Long(), events(NUMBERS_OF_BID));
        switch (query) {
            case "q11":
                return builder.stream("bid", bid)
                        .map((number, one) -> KeyValue.pair(one.numbers()[BIDDER], new byte[0]))
                        .groupByKey(Grouped.with(Serdes.Long(), Serdes.ByteArray()))
                        .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(4)))
                        .count(Materialized.with(Serdes.Long(), Serdes.Long()))
                        .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
                        .toStream()
                        .map((session, bids) -> KeyValue.pair(
                                session.key() + " " + session.window().start(),
                                session.key() + "\t" + bids + "\t" + session.window().start() + "\t" + session.window().end()));
            case "q18":
                return builder.stream("bid", bid)
                        .groupBy(
                                (number, one) -> new Pair(one.numbers()[BIDDER], one.numbers()[AUCTION]),
                                Grouped.with(pairs(), events(NUMBERS_OF_BID)))
                        .reduce(NexmarkStreams::later)
                        .toStream()
                        .map((pair, last) -> KeyValue.pair(pair.bidder() + " " + pair.auction(), shown(last)));
            case "q20":
                KTable<Long, Event> auctions = builder.stream(
                                "auction", Consumed.with(Serdes.Long(), events(NUMBERS_OF_AUCTION)))
                        .filter((id, one) -> one.numbers()[CATEGORY] == 10)
                        .toTable(Materialized.with(Serdes.Long(), events(NUMBERS_OF_AUCTION)));
                Function<Event, Long> auction = one -> one.numbers()[AUCTION];
                return builder.table("bid", bid)
                        .join(
                                auctions,
                                auction,
                                (one, other) -> shown(one) + "\t" + shownAuction(other),
                                Materialized.with(Serdes.Long(), Serdes.String()))
                        .toStream()
                        .map((number, row) -> KeyValue.pair(number.toString(), row));
            default:
                throw new IllegalArgumentException(query);
        }
    }

    private static Event later(Event one, Event two) {
        int times = Long.compare(one.numbers()[TIME], two.numbers()[TIME]);
        return times > 0 || times == 0 && one.numbers()[ORDER] > two.numbers()[ORDER] ? one : two;
    }

    private static String shown(Event bid) {
        long[] numbers = bid.numbers();
        String[] texts = bid.texts();
        return numbers[AUCTION] + "\t" + numbers[BIDDER] + "\t" + numbers[PRICE] + "\t" + texts[0] + "\t" + texts[1]
                + "\t" + numbers[TIME] + "\t" + texts[2];
    }

    private static String shownAuction(Event auction) {
        long[] of = auction.numbers();
        String[] texts = auction.texts();
        return of[0] + "\t" + texts[0] + "\t" + texts[1] + "\t" + of[1] + "\t" + of[2] + "\t" + of[3] + "\t" + of[4]
                + "\t" + of[5] + "\t" + of[6] + "\t" + texts[2];
    }

    /** Return the serde of events with so many numbers: these are 8 bytes each, a text has its length before it. */
    private static Serde<Event> events(int numbers) {
        return Serdes.serdeFrom(
                (topic, event) -> {
                    if (event == null) {
                        return null;
                    }
                    byte[][] texts = new byte[event.texts().length][];
                    int size = 8 * numbers;
                    for (int place = 0; place < texts.length; place++) {
                        texts[place] = event.texts()[place].getBytes(UTF_8);
                        size += 4 + texts[place].length;
                    }
                    ByteBuffer bytes = ByteBuffer.allocate(size);
                    for (long number : event.numbers()) {
                        bytes.putLong(number);
                    }
                    for (byte[] text : texts) {
                        bytes.putInt(text.length).put(text);
                    }
                    return bytes.array();
                },
                (topic, data) -> {
                    if (data == null) {
                        return null;
                    }
                    ByteBuffer bytes = ByteBuffer.wrap(data);
                    Event event = new Event(new long[numbers], new String[3]);
                    for (int place = 0; place < numbers; place++) {
                        event.numbers()[place] = bytes.getLong();
                    }
                    for (int place = 0; place < 3; place++) {
                        int length = bytes.getInt();
                        event.texts()[place] = new String(data, bytes.position(), length, UTF_8);
                        bytes.position(bytes.position() + length);
                    }
                    return event;
                });
    }

    private static Serde<Pair> pairs() {
        return Serdes.serdeFrom(
                (topic, pair) -> ByteBuffer.allocate(16).putLong(pair.bidder()).putLong(pair.auction()).array(),
                (topic, data) -> new Pair(ByteBuffer.wrap(data).getLong(), ByteBuffer.wrap(data).getLong(8)));
    }
}
