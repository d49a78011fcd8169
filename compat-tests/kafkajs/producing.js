'use strict'

const { CompressionTypes, Partitioners } = require('kafkajs')
const { decoded } = require('./coding')

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }

// kafkajs answers with where each partition's part of a call begins, and does not say which message
// went where: so the partitioner notes it.
function noting() {
  const choose = Partitioners.DefaultPartitioner()
  return choice => {
    choice.message.chosen = choose(choice)
    return choice.message.chosen
  }
}

class Producing {
  constructor(kafka, request) {
    this.client = kafka.producer({
      idempotent: request.is_idempotent,
      createPartitioner: noting,
      ...(request.transactional_id ? { transactionalId: request.transactional_id, maxInFlightRequests: 1 } : {}),
    })
    this.sender = this.client
    this.acks = request.acks
    this.compression = CODECS[request.codec]
    this.linger = request.linger_ms
    this.waiting = []
    this.last = Promise.resolve()
  }

  async start() {
    await this.client.connect()
  }

  send(request) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, resolve, reject })
      if (this.waiting.length === 1) setTimeout(() => this.release(), this.linger)
    })
  }

  // One call after the other, as kafkajs keeps no order between two.
  release() {
    const batch = this.waiting
    this.waiting = []
    if (batch.length) this.last = this.last.then(() => this.sendAll(batch))
    return this.last
  }

  async sendAll(batch) {
    const topic = batch[0].request.topic
    const messages = batch.map(({ request }) => ({
      key: decoded(request.key),
      value: decoded(request.value),
      headers: grouped(request.headers),
      partition: request.partition === null ? undefined : request.partition,
      timestamp: request.timestamp_ms === null ? undefined : String(request.timestamp_ms),
    }))
    try {
      const found = await this.sender.send({ topic, messages, acks: this.acks, compression: this.compression })
      const next = new Map((found || []).map(each => [each.partition, Number(each.baseOffset)]))
      batch.forEach(({ resolve }, index) => {
        const { chosen } = messages[index]
        // Without acks nothing is told.
        if (!next.has(chosen)) return resolve([-1, -1])
        resolve([chosen, next.get(chosen)])
        next.set(chosen, next.get(chosen) + 1)
      })
    } catch (error) {
      batch.forEach(({ reject }) => reject(error))
    }
  }

  async flush() {
    await this.release()
  }

  async begin() {
    this.sender = await this.client.transaction()
  }

  async commit() {
    await this.release()
    await this.sender.commit()
  }

  async abort() {
    await this.release()
    await this.sender.abort()
  }

  async close() {
    await this.client.disconnect()
  }
}

// A name that is there twice has a list of values.
function grouped(headers) {
  const found = {}
  for (const [name, value] of headers) {
    found[name] = name in found ? [].concat(found[name], decoded(value)) : decoded(value)
  }
  return found
}

module.exports = { Producing }
