// Bytes are base64 in the lines.
'use strict'

const decoded = text => (text === null ? null : Buffer.from(text, 'base64'))
const coded = data => (data === null || data === undefined ? null : Buffer.from(data).toString('base64'))

module.exports = { coded, decoded }
