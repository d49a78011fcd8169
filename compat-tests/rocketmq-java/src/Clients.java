import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.remoting.RPCHook;

/** Makes clients with their defaults, but for how often they ask for routes and tell that they live. */
final class Clients {
    private static final int TIMEOUT = 20_000;
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private static volatile RPCHook hook;

    private Clients() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("as", Clients::as);
    }

    /** as [USER SECRET]: clients that are made from now on sign what they ask as a user; as nobody without one. */
    static String as(String[] words) {
        hook = words.length < 3 ? null : new AclClientRPCHook(new SessionCredentials(words[1], words[2]));
        return words.length < 3 ? "nobody" : words[1];
    }

    /** What signs the requests of a client that is made now; null if nothing does. */
    static RPCHook hook() {
        return hook;
    }

    static String instance() {
        return "i" + ProcessHandle.current().pid() + "x" + NUMBER.incrementAndGet();
    }

    /** On a busy machine an answer may take longer than three seconds, the default of all of them. */
    static void patient(ClientConfig client) {
        client.setMqClientApiTimeout(TIMEOUT);
        if (client instanceof DefaultMQProducer) {
            ((DefaultMQProducer) client).setSendMsgTimeout(TIMEOUT);
        }
    }

    static DefaultMQProducer producer(String namesrv) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("producers-" + NUMBER.incrementAndGet(), hook);
        producer.setNamesrvAddr(namesrv);
        producer.setInstanceName(instance());
        producer.setHeartbeatBrokerInterval(1000);
        patient(producer);
        producer.start();
        return producer;
    }

    static DefaultMQPushConsumer push(String namesrv, String group) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
                group, hook, new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(namesrv);
        consumer.setInstanceName(instance());
        consumer.setPollNameServerInterval(1000);
        patient(consumer);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    static DefaultLitePullConsumer lite(String namesrv, String group) {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group, hook);
        consumer.setNamesrvAddr(namesrv);
        consumer.setInstanceName(instance());
        consumer.setPollNameServerInterval(1000);
        patient(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }
}
