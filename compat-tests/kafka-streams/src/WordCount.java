import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words, with a repartition topic and a store with a changelog: one instance of an application.
 *
 * <p>Takes the input and the output topic, and then configs of Kafka Streams, as name=value. It prints its states,
 * and answers each line of input: "tasks" with the tasks of its threads, "hosts" with the end points of all instances
 * and how many partitions of the store each has, anything else by ending in good order.
 */
public final class WordCount {
    private static final String STORE = "counts";

    private WordCount() {}

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        for (String pair : Arrays.copyOfRange(arguments, 2, arguments.length)) {
            int at = pair.indexOf('=');
            properties.put(pair.substring(0, at), pair.substring(at + 1));
        }
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines =
                builder.stream(arguments[0], Consumed.with(Serdes.String(), Serdes.String()));
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore(STORE))
                        .withKeySerde(Serdes.String())
                        .withValueSerde(Serdes.Long()))
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(arguments[1], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(properties), properties);
        streams.setStateListener((now, before) -> say("state " + now));
        streams.setUncaughtExceptionHandler(error -> {
            say("error " + error);
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse
                    .SHUTDOWN_CLIENT;
        });
        streams.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.equals("tasks")) {
                say("tasks " + tasks(streams));
            } else if (line.equals("hosts")) {
                say("hosts " + hosts(streams));
            } else {
                break;
            }
        }
        streams.close(Duration.ofSeconds(30));
        say("closed");
    }

    private static String tasks(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream()
                .flatMap(thread -> thread.activeTasks().stream())
                .map(task -> task.taskId().toString())
                .sorted()
                .collect(Collectors.joining(" "));
    }

    private static String hosts(KafkaStreams streams) {
        return streams.streamsMetadataForStore(STORE).stream()
                .map(each -> each.host() + ":" + each.port() + "=" + each.topicPartitions().size())
                .sorted()
                .collect(Collectors.joining(" "));
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
