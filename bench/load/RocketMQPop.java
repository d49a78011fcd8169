import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.AckCallback;
import org.apache.rocketmq.client.consumer.AckResult;
import org.apache.rocketmq.client.consumer.AckStatus;
import org.apache.rocketmq.client.consumer.PopCallback;
import org.apache.rocketmq.client.consumer.PopResult;
import org.apache.rocketmq.client.consumer.PopStatus;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.MQClientManager;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PopMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;

/**
 * Pops of RocketMQ's own client: NAMESRV TOPIC COUNT THREADS. Each thread pops up to 32 messages,
 * acknowledges each by a request of its own, as the push consumer does, and pops again when all are
 * answered. Prints messages a second, the first third uncounted.
 */
public final class RocketMQPop {
    private static final int BATCH = 32;
    private static final long INVISIBLE_MS = 60_000;
    private static final long TIMEOUT_MS = 15_000;

    private final MQClientAPIImpl api;
    private final String broker;
    private final String address;
    private final String topic;
    private final String group = "pop" + System.nanoTime();
    private final AtomicLong done = new AtomicLong();
    private final AtomicLong began = new AtomicLong();
    private final AtomicLong ended = new AtomicLong();
    private final long count;

    private RocketMQPop(MQClientAPIImpl api, BrokerData broker, String topic, long count) {
        this.api = api;
        this.broker = broker.getBrokerName();
        this.address = broker.selectBrokerAddr();
        this.topic = topic;
        this.count = count;
    }

    public static void main(String[] words) {
        try {
            ClientConfig config = new ClientConfig();
            config.setNamesrvAddr(words[0]);
            MQClientInstance client = MQClientManager.getInstance().getOrCreateMQClientInstance(config);
            client.start();
            MQClientAPIImpl api = client.getMQClientAPIImpl();
            BrokerData broker =
                    api.getTopicRouteInfoFromNameServer(words[1], TIMEOUT_MS).getBrokerDatas().get(0);
            new RocketMQPop(api, broker, words[1], Long.parseLong(words[2]))
                    .run(Integer.parseInt(words[3]));
        } catch (Exception error) {
            fail(error);
        }
        System.exit(0);
    }

    private static void fail(Throwable error) {
        // The client's threads would keep the process alive.
        error.printStackTrace();
        System.exit(1);
    }

    private void run(int threads) throws Exception {
        List<Thread> started = new ArrayList<>();
        for (int number = 0; number < threads; number++) {
            Thread thread = new Thread(() -> {
                try {
                    while (done.get() < count) {
                        acknowledge(pop());
                    }
                } catch (Exception error) {
                    fail(error);
                }
            });
            thread.start();
            started.add(thread);
        }
        for (Thread thread : started) {
            thread.join();
        }
        double seconds = (ended.get() - began.get()) / 1e9;
        System.out.printf("@@ %.1f%n", (count - count / 3) / seconds);
    }

    private List<MessageExt> pop() throws Exception {
        PopMessageRequestHeader header = new PopMessageRequestHeader();
        header.setConsumerGroup(group);
        header.setTopic(topic);
        header.setQueueId(-1);
        header.setMaxMsgNums(BATCH);
        header.setInvisibleTime(INVISIBLE_MS);
        header.setPollTime(5_000);
        header.setBornTime(System.currentTimeMillis());
        header.setInitMode(0);
        header.setExpType("TAG");
        header.setExp("*");
        AtomicReference<PopResult> found = new AtomicReference<>();
        CountDownLatch answered = new CountDownLatch(1);
        api.popMessageAsync(broker, address, header, TIMEOUT_MS, new PopCallback() {
            @Override
            public void onSuccess(PopResult result) {
                found.set(result);
                answered.countDown();
            }

            @Override
            public void onException(Throwable error) {
                fail(error);
            }
        });
        answered.await();
        return found.get().getPopStatus() == PopStatus.FOUND ? found.get().getMsgFoundList() : List.of();
    }

    private void acknowledge(List<MessageExt> messages) throws Exception {
        Semaphore answered = new Semaphore(0);
        AckCallback callback = new AckCallback() {
            @Override
            public void onSuccess(AckResult result) {
                if (result.getStatus() != AckStatus.OK) {
                    fail(new IllegalStateException(String.valueOf(result)));
                }
                answered.release();
            }

            @Override
            public void onException(Throwable error) {
                fail(error);
            }
        };
        for (MessageExt message : messages) {
            AckMessageRequestHeader header = new AckMessageRequestHeader();
            header.setConsumerGroup(group);
            header.setTopic(topic);
            header.setQueueId(message.getQueueId());
            header.setOffset(message.getQueueOffset());
            header.setExtraInfo(message.getProperty(MessageConst.PROPERTY_POP_CK));
            api.ackMessageAsync(address, TIMEOUT_MS, callback, header);
        }
        if (!answered.tryAcquire(messages.size(), TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
            fail(new IllegalStateException("acknowledgements are not answered"));
        }
        long now = done.addAndGet(messages.size());
        if (now >= count / 3) {
            began.compareAndSet(0, System.nanoTime());
        }
        if (now >= count) {
            ended.compareAndSet(0, System.nanoTime());
        }
    }
}
