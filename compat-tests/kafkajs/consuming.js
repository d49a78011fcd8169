'use strict'

const { randomUUID } = require('crypto')
const { coded } = require('./coding')

// kafkajs reads in groups only: a reader by hand is the one member of a group of its own.
class Consuming {
  constructor(kafka, request) {
    this.kafka = kafka
    this.request = request
    this.isMember = request.do === 'member'
    this.group = this.isMember ? request.group : `alone-${randomUUID()}`
    this.admin = kafka.admin()
    this.arrived = []
    this.positions = new Map()
    this.assigned = []
    this.wake = () => {}
  }

  async start() {
    await this.admin.connect()
    if (this.isMember) await this.run(this.request.topic)
  }

  async run(topic) {
    const { wait_ms_max, bytes_max, session_ms } = this.request
    this.client = this.kafka.consumer({
      groupId: this.group,
      heartbeatInterval: 300,
      ...(wait_ms_max ? { maxWaitTimeInMs: wait_ms_max, maxBytesPerPartition: bytes_max } : {}),
      ...(session_ms ? { sessionTimeout: session_ms } : {}),
    })
    const joined = new Promise(resolve => {
      this.client.on(this.client.events.GROUP_JOIN, ({ payload }) => {
        this.assigned = payload.memberAssignment[topic] || []
        // What has not been polled is read again by whoever has the partition now.
        this.arrived = []
        for (const partition of this.positions.keys()) {
          if (!this.assigned.includes(partition)) this.positions.delete(partition)
        }
        resolve()
      })
    })
    await this.client.connect()
    await this.client.subscribe({ topic, fromBeginning: true })
    await this.client.run({
      autoCommit: false,
      eachBatchAutoResolve: true,
      eachBatch: async ({ batch, isStale }) => {
        if (isStale()) return
        for (const message of batch.messages) this.arrived.push([batch.partition, message])
        this.wake()
      },
    })
    if (!this.isMember) await joined
  }

  async assign({ topic, partitions, offset }) {
    await this.run(topic)
    this.wanted = new Set(partitions)
    this.arrived = []
    for (const partition of partitions) this.client.seek({ topic, partition, offset: String(offset) })
  }

  async seek({ topic, partition, offset }) {
    this.arrived = this.arrived.filter(([each]) => each !== partition)
    this.client.seek({ topic, partition, offset: String(offset) })
  }

  async poll({ ms }) {
    if (!this.arrived.length) {
      await new Promise(resolve => {
        const timer = setTimeout(resolve, ms)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      this.wake = () => {}
    }
    const found = this.arrived
    this.arrived = []
    for (const [partition, message] of found) this.positions.set(partition, Number(message.offset) + 1)
    return found.filter(([partition]) => !this.wanted || this.wanted.has(partition)).map(told)
  }

  async partitions({ topic }) {
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.map(each => each.partitionId)
  }

  async beginning({ topic, partition }) {
    return Number((await this.ends(topic, partition)).low)
  }

  async end({ topic, partition }) {
    return Number((await this.ends(topic, partition)).high)
  }

  async ends(topic, partition) {
    return (await this.admin.fetchTopicOffsets(topic)).find(each => each.partition === partition)
  }

  // It answers with the end where there is nothing as late as that.
  async offset_at({ topic, partition, timestamp_ms }) {
    const found = await this.admin.fetchTopicOffsetsByTimestamp(topic, timestamp_ms)
    const offset = Number(found.find(each => each.partition === partition).offset)
    return offset === (await this.end({ topic, partition })) ? null : offset
  }

  async assignment() {
    return this.assigned
  }

  async commit() {
    const { topic } = this.request
    await this.client.commitOffsets(
      [...this.positions].map(([partition, offset]) => ({ topic, partition, offset: String(offset) })),
    )
  }

  async committed({ topic, partition }) {
    const [found] = await this.admin.fetchOffsets({ groupId: this.group, topics: [topic] })
    const offset = Number(found.partitions.find(each => each.partition === partition).offset)
    return offset < 0 ? null : offset
  }

  async close() {
    if (this.client) await this.client.disconnect()
    await this.admin.disconnect()
  }
}

function told([partition, { offset, key, value, headers, timestamp }]) {
  const pairs = Object.entries(headers || {}).flatMap(([name, values]) =>
    [].concat(values).map(each => [name, coded(each)]),
  )
  return [partition, Number(offset), coded(key), coded(value), pairs, Number(timestamp)]
}

module.exports = { Consuming }
