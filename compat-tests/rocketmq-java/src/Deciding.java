import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What transactional producers do: half messages, decided at once, later, or by another instance. */
final class Deciding {
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private Deciding() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("transaction", Deciding::transaction);
        scenarios.put("abandon", Deciding::abandon);
        scenarios.put("adopt", Deciding::adopt);
    }

    /** Decides by the message's tag: C commits and R rolls back at once; U says nothing, and when it
     * is asked about: UC commits, UR rolls back. */
    static final class ByTag implements TransactionListener {
        final Map<String, Integer> asked = new ConcurrentHashMap<>();

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            switch (message.getTags()) {
                case "C": return LocalTransactionState.COMMIT_MESSAGE;
                case "R": return LocalTransactionState.ROLLBACK_MESSAGE;
                default: return LocalTransactionState.UNKNOW;
            }
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            asked.merge(new String(message.getBody()), 1, Integer::sum);
            return message.getTags().equals("UR")
                    ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.COMMIT_MESSAGE;
        }
    }

    private static TransactionMQProducer producer(String namesrv, String group, ByTag listener)
            throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer(group, Clients.hook());
        producer.setNamesrvAddr(namesrv);
        producer.setInstanceName(Clients.instance());
        producer.setHeartbeatBrokerInterval(1000);
        Clients.patient(producer);
        producer.setTransactionListener(listener);
        producer.start();
        return producer;
    }

    private static void send(TransactionMQProducer producer, String topic, String tag, int count)
            throws Exception {
        send(producer, topic, tag, count, "1");
    }

    /** Sends half messages that are not asked about for so many seconds. */
    private static void send(TransactionMQProducer producer, String topic, String tag, int count, String immune)
            throws Exception {
        for (int number = 0; number < count; number++) {
            Message message = new Message(topic, tag, "key-" + tag + number,
                    (tag + number).getBytes());
            message.putUserProperty("CHECK_IMMUNITY_TIME_IN_SECONDS", immune);
            SendResult result = producer.sendMessageInTransaction(message, null);
            Program.same(SendStatus.SEND_OK, result.getSendStatus(), "status");
        }
    }

    /** transaction NAMESRV TOPIC [SECONDS]: decides some, is asked about the others after the seconds. */
    static String transaction(String[] words) throws Exception {
        String immune = words.length > 3 ? words[3] : "1";
        ByTag listener = new ByTag();
        TransactionMQProducer producer =
                producer(words[1], "deciders-" + NUMBER.incrementAndGet(), listener);
        for (String tag : List.of("C", "R", "UC", "UR")) {
            send(producer, words[2], tag, 5, immune);
        }
        Program.await("all undecided to be asked about", 60, () -> listener.asked.size() == 10);
        List<MessageExt> found =
                Consuming.all(words[1], words[2], "decided-" + words[2], "*", 10);
        Program.same(Set.of("C0", "C1", "C2", "C3", "C4", "UC0", "UC1", "UC2", "UC3", "UC4"),
                Consuming.bodies(found), "what was committed");
        MessageExt one = found.get(0);
        Program.check(one.getProperty("REAL_TOPIC") == null, "nothing of the half is left");
        for (Map.Entry<String, Integer> each : listener.asked.entrySet()) {
            Program.same(1, each.getValue(), "asked once about " + each.getKey());
        }
        producer.shutdown();
        return String.valueOf(found.size());
    }

    /** abandon NAMESRV TOPIC GROUP: sends, decides nothing, and goes away. */
    static String abandon(String[] words) throws Exception {
        TransactionMQProducer producer = producer(words[1], words[3], new ByTag());
        send(producer, words[2], "UC", 3);
        producer.shutdown();
        return "3";
    }

    /** adopt NAMESRV TOPIC GROUP: another instance of the group is asked, and what it says counts. */
    static String adopt(String[] words) throws Exception {
        ByTag listener = new ByTag();
        TransactionMQProducer producer = producer(words[1], words[3], listener);
        // It is known to the server once it has sent something.
        send(producer, words[2], "C", 1);
        List<MessageExt> found = Consuming.all(words[1], words[2], "adopted-" + words[2], "*", 4);
        producer.shutdown();
        return String.join(",", Consuming.bodies(found));
    }
}
