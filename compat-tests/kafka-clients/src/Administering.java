import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** An admin client. */
final class Administering implements Program.Handle {
    private final Admin client;

    Administering(Program.Fields fields) {
        Map<String, Object> config = new HashMap<>(Login.of(fields));
        config.put("bootstrap.servers", fields.text("bootstrap"));
        client = Admin.create(config);
    }

    @Override
    public Object take(String request, Program.Fields fields) throws Exception {
        String topic = fields.text("topic");
        switch (request) {
            case "create":
                NewTopic made = new NewTopic(topic, Optional.of(fields.number("partition_count")), Optional.empty());
                client.createTopics(List.of(made.configs(fields.pairs("config")))).all().get();
                return null;
            case "grow":
                client.createPartitions(Map.of(topic, NewPartitions.increaseTo(fields.number("partition_count")))).all().get();
                return null;
            case "delete":
                client.deleteTopics(List.of(topic)).all().get();
                return null;
            case "topics":
                return client.listTopics().names().get();
            case "configs":
                Map<String, String> configs = new HashMap<>();
                client.describeConfigs(List.of(resource(topic))).all().get().get(resource(topic)).entries()
                    .forEach(each -> configs.put(each.name(), each.value()));
                return configs;
            case "alter":
                List<AlterConfigOp> changes = new ArrayList<>();
                fields.pairs("config").forEach((name, value) -> changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
                client.incrementalAlterConfigs(Map.of(resource(topic), changes)).all().get();
                return null;
            case "delete_records":
                TopicPartition place = new TopicPartition(topic, fields.number("partition"));
                client.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(fields.large("before")))).all().get();
                return null;
            case "close":
                client.close();
                return null;
            default:
                return takeOfGroup(request, fields.text("group"), topic);
        }
    }

    @SuppressWarnings("deprecation")
    private Object takeOfGroup(String request, String group, String topic) throws Exception {
        switch (request) {
            case "groups":
                return client.listConsumerGroups().all().get().stream().map(ConsumerGroupListing::groupId).collect(Collectors.toList());
            case "group":
                ConsumerGroupDescription found = client.describeConsumerGroups(Set.of(group)).all().get().get(group);
                return List.of(found.state().toString(), found.members().size());
            case "group_offsets":
                Map<String, Long> offsets = new HashMap<>();
                client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((place, at) -> {
                    if (place.topic().equals(topic)) {
                        offsets.put(String.valueOf(place.partition()), at.offset());
                    }
                });
                return offsets;
            case "delete_group":
                client.deleteConsumerGroups(Set.of(group)).all().get();
                return null;
            default:
                throw new IllegalArgumentException("an admin client has no " + request);
        }
    }

    private static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }
}
