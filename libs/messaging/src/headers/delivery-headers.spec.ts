import type { ConsumeMessage } from 'amqplib';
import {
  attemptsOf,
  errorHeaders,
  forwardedProperties,
  retryHeaders,
  senderHeaders,
} from './delivery-headers';

function delivery(
  headers: Record<string, unknown>,
  properties: Record<string, unknown> = {},
): ConsumeMessage {
  return {
    content: Buffer.from('{}'),
    fields: {
      exchange: 'Platform.Contracts:IThing',
      routingKey: '',
      redelivered: false,
      deliveryTag: 1,
      consumerTag: 'c',
    },
    properties: { headers, ...properties },
  } as unknown as ConsumeMessage;
}

describe('attemptsOf', () => {
  it.each([
    [undefined, 0],
    [{}, 0],
    [{ 'x-retry-attempts': 3 }, 3],
    [{ 'x-retry-attempts': '3' }, 0],
    [{ 'x-retry-attempts': -1 }, 0],
    // The broker's own counts are ignored: RabbitMQ 4 resets them on every publish, and a sender may forge
    // them.
    [{ 'x-death': [{ count: 9, reason: 'expired', queue: 'q' }], 'x-delivery-count': 9 }, 0],
  ])('reads %j as %p', (headers, expected) => {
    expect(attemptsOf(headers)).toBe(expected);
  });
});

describe('retryHeaders', () => {
  it("keeps the sender's headers, sets the counts, and records the first exchange", () => {
    const failure = { error: new RangeError('m'), at: new Date('2026-01-05T10:00:00Z') };
    const first = retryHeaders(
      delivery({ tenant: 'acme', publishId: '7' }),
      { attempts: 1, postponements: 3 },
      failure,
    );
    expect(first).toEqual({
      tenant: 'acme',
      'x-retry-attempts': 1,
      'x-outage-postponements': 3,
      'x-original-exchange': 'Platform.Contracts:IThing',
      'MT-Fault-Timestamp': '2026-01-05T10:00:00.000Z',
      'MT-Fault-ExceptionType': 'RangeError',
      'MT-Fault-Message': 'm',
    });
    const returned = delivery({
      ...first,
      'x-death': [{}],
      'x-first-death-queue': 'q',
      'x-delivery-count': 2,
    });
    returned.fields.exchange = '';
    expect(retryHeaders(returned, { attempts: 2, postponements: 0 }, failure)).toEqual({
      ...first,
      'x-retry-attempts': 2,
      'x-outage-postponements': 0,
    });
  });
});

describe('errorHeaders', () => {
  const failure = { queue: 'q', attempts: 5, at: new Date('2026-01-05T10:00:00Z') };

  it('adds the reason and the error without its stack', () => {
    const error = new RangeError('facility 501 is unknown');
    expect(errorHeaders(delivery({ tenant: 'acme' }), { ...failure, reason: 'failed', error })).toEqual({
      tenant: 'acme',
      'x-original-exchange': 'Platform.Contracts:IThing',
      'x-error-reason': 'failed',
      'x-retry-attempts': 5,
      'MT-Reason': 'fault',
      'MT-Fault-Timestamp': '2026-01-05T10:00:00.000Z',
      'MT-Fault-InputAddress': 'queue:q',
      'MT-Fault-RetryCount': 5,
      'MT-Fault-ExceptionType': 'RangeError',
      'MT-Fault-Message': 'facility 501 is unknown',
    });
  });

  it('bounds the text of the error', () => {
    const headers = errorHeaders(delivery({}), {
      ...failure,
      reason: 'failed',
      error: new Error('x'.repeat(5_000)),
    });
    expect(headers['MT-Fault-Message']).toHaveLength(1_000);
  });

  it('calls a message without a handler a dead letter', () => {
    const headers = errorHeaders(delivery({}), { ...failure, reason: 'unknown-type', error: null });
    expect(headers).toMatchObject({ 'x-error-reason': 'unknown-type', 'MT-Reason': 'dead-letter' });
    expect(headers).not.toHaveProperty('MT-Fault-Message');
  });
});

describe('senderHeaders', () => {
  it.each(['CC', 'BCC', 'cc', 'Bcc'])('drops the extra routing keys in %s', (name) => {
    expect(senderHeaders(delivery({ tenant: 'acme', [name]: ['other.queue'] }))).toEqual({ tenant: 'acme' });
  });
});

describe('forwardedProperties', () => {
  it('keeps the forwardable properties and makes the message persistent', () => {
    const message = delivery(
      {},
      { contentType: 'application/json', messageId: 'm', replyTo: 'r', expiration: '1000', userId: 'guest' },
    );
    expect(forwardedProperties(message, { a: 1 })).toEqual({
      contentType: 'application/json',
      messageId: 'm',
      replyTo: 'r',
      persistent: true,
      headers: { a: 1 },
    });
  });
});
