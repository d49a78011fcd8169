import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/** One member of a group whose other members are another client's. */
final class Mixing {
    private static final int START_ATTEMPTS = 5;
    private static final Map<String, DefaultMQPushConsumer> MEMBERS = new ConcurrentHashMap<>();
    private static final Map<String, List<MessageExt>> SEEN = new ConcurrentHashMap<>();
    private static final Map<String, List<String>> LOGS = new ConcurrentHashMap<>();

    private Mixing() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("mix-join", Mixing::join);
        scenarios.put("mix-queues", Mixing::queues);
        scenarios.put("mix-seen", Mixing::seen);
        scenarios.put("mix-count", Mixing::count);
        scenarios.put("mix-log", Mixing::log);
        scenarios.put("mix-id", Mixing::id);
        scenarios.put("mix-leave", Mixing::leave);
    }

    /** mix-join NAMESRV TOPIC GROUP [orderly|broadcasting]. */
    static String join(String[] words) throws Exception {
        String kind = words.length > 4 ? words[4] : "";
        List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
        List<String> lines = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = null;
        for (int attempt = 1; consumer == null; attempt++) {
            DefaultMQPushConsumer made = made(words, kind, found, lines);
            try {
                made.start();
                consumer = made;
            } catch (IllegalStateException error) {
                // It asks a name server once, and on a busy machine the first connection may fail.
                made.shutdown();
                if (attempt == START_ATTEMPTS) {
                    throw error;
                }
                Thread.sleep(1000);
            }
        }
        MEMBERS.put(words[3], consumer);
        SEEN.put(words[3], found);
        LOGS.put(words[3], lines);
        return "";
    }

    private static DefaultMQPushConsumer made(
            String[] words, String kind, List<MessageExt> found, List<String> lines)
            throws Exception {
        DefaultMQPushConsumer consumer = Clients.push(words[1], words[3]);
        consumer.subscribe(words[2], "*");
        if (kind.equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(message -> lines.add(line(message)));
                found.addAll(messages);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener(Consuming.into(found));
        }
        if (kind.equals("broadcasting")) {
            Models.broadcast(consumer);
        }
        return consumer;
    }

    /** QUEUE:BODY:MICROSECONDS, when the listener of an orderly member was given it. */
    private static String line(MessageExt message) {
        Instant now = Instant.now();
        long micros = now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
        return message.getQueueId() + ":" + new String(message.getBody()) + ":" + micros;
    }

    /** mix-count GROUP: how many messages it was given, those that came again too. */
    static String count(String[] words) throws Exception {
        return String.valueOf(SEEN.get(words[1]).size());
    }

    /** mix-log GROUP: what an orderly member was given, in that order. */
    static String log(String[] words) throws Exception {
        List<String> lines = LOGS.get(words[1]);
        synchronized (lines) {
            return String.join(",", lines);
        }
    }

    /** mix-id GROUP: the id of its client. */
    static String id(String[] words) throws Exception {
        return MEMBERS.get(words[1]).buildMQClientId();
    }

    /** mix-queues TOPIC GROUP: the numbers of the queues that it reads, with commas between. */
    static String queues(String[] words) throws Exception {
        return MEMBERS.get(words[2]).getDefaultMQPushConsumerImpl().getRebalanceImpl()
                .getProcessQueueTable().keySet().stream()
                .filter(queue -> queue.getTopic().equals(words[1]))
                .map(queue -> String.valueOf(queue.getQueueId())).sorted()
                .collect(Collectors.joining(","));
    }

    /** mix-seen GROUP: the bodies of what it was given. */
    static String seen(String[] words) throws Exception {
        return String.join(",", Consuming.bodies(SEEN.get(words[1])));
    }

    /** mix-leave GROUP. */
    static String leave(String[] words) throws Exception {
        MEMBERS.remove(words[1]).shutdown();
        return "";
    }
}
