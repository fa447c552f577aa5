// Kafka Streams' inner foreign-key join keeps a row whose two sides are gone: docs/kafka.md, "Races of the foreign-key join".
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.KTable;

public class StaleForeignKeyJoin {
  public static void main(String[] arguments) throws Exception {
    Map<String, Object> cluster = Map.of("bootstrap.servers", arguments[0]);
    try (Admin admin = Admin.create(cluster)) {
      var topics = List.of("left", "right", "joined").stream().map(name -> new NewTopic(name, 1, (short) 1)).toList();
      admin.createTopics(topics).all().get();
    }
    StreamsBuilder builder = new StreamsBuilder();
    KTable<String, String> left = builder.table("left"); // its values are payload|foreign key
    KTable<String, String> right = builder.table("right");
    left.join(right, value -> value.split("\\|")[1], (l, r) -> l + ", " + r).toStream().to("joined");
    StreamsConfig settings = new StreamsConfig(Map.of(
        "application.id", "stale",
        "bootstrap.servers", arguments[0],
        "commit.interval.ms", 100,
        "statestore.cache.max.bytes", 0,
        "default.key.serde", Serdes.StringSerde.class,
        "default.value.serde", Serdes.StringSerde.class,
        "state.dir", Files.createTempDirectory("stale").toString()));
    try (var streams = new KafkaStreams(builder.build(), settings);
        var producer = new KafkaProducer<>(cluster, new StringSerializer(), new StringSerializer());
        var consumer = new KafkaConsumer<>(cluster, new StringDeserializer(), new StringDeserializer())) {
      streams.start();
      var joined = new TopicPartition("joined", 0);
      consumer.assign(List.of(joined));
      consumer.seekToBeginning(List.of(joined));
      producer.send(new ProducerRecord<>("right", "r1", "x"));
      producer.send(new ProducerRecord<>("left", "l", "a|r1"));
      List<String> shown = new ArrayList<>();
      while (shown.isEmpty()) {
        consumer.poll(Duration.ofMillis(100)).forEach(one -> shown.add(one.value()));
      }
      producer.send(new ProducerRecord<>("left", "l", null)); // asks r1 for a null, under the hash of null
      producer.send(new ProducerRecord<>("left", "l", "b|r2")); // there is no r2, and nobody answers
      producer.flush();
      for (long end = System.currentTimeMillis() + 10_000; System.currentTimeMillis() < end; ) {
        consumer.poll(Duration.ofMillis(100)).forEach(one -> shown.add(one.value()));
      }
      System.out.println("expected [a|r1, x, null], was " + shown);
    }
  }
}
