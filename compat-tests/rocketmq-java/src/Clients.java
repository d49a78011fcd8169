import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** Makes clients with their defaults, but for how often they ask for routes and tell that they live. */
final class Clients {
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private Clients() {}

    static String instance() {
        return "i" + ProcessHandle.current().pid() + "x" + NUMBER.incrementAndGet();
    }

    static DefaultMQProducer producer(String namesrv) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("producers-" + NUMBER.incrementAndGet());
        producer.setNamesrvAddr(namesrv);
        producer.setInstanceName(instance());
        producer.setHeartbeatBrokerInterval(1000);
        producer.start();
        return producer;
    }

    static DefaultMQPushConsumer push(String namesrv, String group) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setInstanceName(instance());
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    static DefaultLitePullConsumer lite(String namesrv, String group) {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setInstanceName(instance());
        consumer.setPollNameServerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }
}
