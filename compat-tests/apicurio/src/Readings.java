import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Writes readings of a sensor in Avro, or reads them: the schema is in the registry, its number in every record.
 *
 * <p>Takes "write" or "read", the bootstrap address, the registry's URL, the topic and a count. Reading prints each
 * record, and the names of the fields of the schema that it was written with.
 */
public final class Readings {
    private static final String SCHEMA = "{\"type\": \"record\", \"name\": \"Reading\", \"fields\": ["
            + "{\"name\": \"sensor\", \"type\": \"string\"}, {\"name\": \"degrees\", \"type\": \"double\"}]}";

    private Readings() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> configs = Map.of(
                "bootstrap.servers", arguments[1],
                "apicurio.registry.url", arguments[2],
                "apicurio.registry.auto-register", true,
                "auto.offset.reset", "earliest");
        int count = Integer.parseInt(arguments[4]);
        if (arguments[0].equals("write")) {
            write(configs, arguments[3], count);
        } else {
            read(configs, arguments[3], count);
        }
        // The serializers' HTTP client leaves threads behind.
        System.exit(0);
    }

    private static void write(Map<String, Object> configs, String topic, int count) throws Exception {
        Schema schema = new Schema.Parser().parse(SCHEMA);
        AvroKafkaSerializer<GenericRecord> values = new AvroKafkaSerializer<>();
        values.configure(configs, false);
        try (KafkaProducer<String, GenericRecord> producer =
                new KafkaProducer<>(configs, new StringSerializer(), values)) {
            for (int at = 0; at < count; at++) {
                GenericRecord reading = new GenericData.Record(schema);
                reading.put("sensor", "s-" + at);
                reading.put("degrees", at / 2.0);
                producer.send(new ProducerRecord<>(topic, 0, null, reading)).get();
            }
        }
    }

    private static void read(Map<String, Object> configs, String topic, int count) {
        AvroKafkaDeserializer<GenericRecord> values = new AvroKafkaDeserializer<>();
        values.configure(configs, false);
        try (KafkaConsumer<String, GenericRecord> consumer =
                new KafkaConsumer<>(configs, new StringDeserializer(), values)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            int seen = 0;
            while (seen < count) {
                for (ConsumerRecord<String, GenericRecord> each : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(each.value());
                    seen++;
                }
            }
        }
    }
}
