import { hostname } from 'node:os';
import { BusinessUnitChangeV1, ScheduleRecurringTaskInstanceGenerationRequest } from '@platform/contracts';
import { z } from 'zod';
import { MAX_BODY_BYTES } from './body-limits';
import { createEnvelope, createFaultBody, hostInfo, isFaultUrn, isGuid } from './create-envelope';
import { MessageTooLargeError, UnreadableMessageError } from './envelope-errors';
import { readEnvelope, tryReadEnvelope } from './read-envelope';

const MESSAGE: BusinessUnitChangeV1 = {
  eventId: '01930000-5d2b-0015-8c3a-08dd0a1b2c3d',
  occurredAtUtc: '2026-01-05T10:00:00Z',
  businessUnitId: 77,
  facilityIds: [501, 502],
  changeType: 'Activated',
};

const OPTIONS = {
  namespace: 'Platform.Contracts',
  messageId: '3f2a4b1e-0c52-4a30-9d5b-0f2d8f3c1a77',
  sentAt: new Date('2026-01-05T10:00:01.234Z'),
};

const ENVELOPE_PROPERTIES = { contentType: 'application/vnd.masstransit+json' };

/**
 * A message as a MassTransit 8 publisher sends it, after MassTransit's documented envelope format.
 * Identifiers are NewIds.
 */
const MASSTRANSIT_SAMPLE = {
  messageId: '181c0000-6393-3630-36a4-08daf4e7c6da',
  requestId: 'ef375b18-69ee-4a9e-b5ec-44ee1177a27e',
  correlationId: null,
  conversationId: '181c0000-6393-3630-b1b7-08daf4e7c6db',
  initiatorId: null,
  sourceAddress: 'rabbitmq://localhost/CUSTOMERS_Api_bus_abcoyynf?temporary=true',
  destinationAddress: 'rabbitmq://localhost/Platform.Contracts:IBusinessUnitChangeV1',
  responseAddress: 'rabbitmq://localhost/CUSTOMERS_Api_bus_abcoyynf?temporary=true',
  faultAddress: null,
  messageType: [
    'urn:message:Customers.Internal:BusinessUnitActivated',
    'urn:message:Platform.Contracts:IBusinessUnitChangeV1',
  ],
  message: { ...MESSAGE, timeZone: null, introducedLater: { nested: true } },
  expirationTime: '2026-01-05T10:00:31.2345678Z',
  sentTime: '2026-01-05T10:00:01.2345678Z',
  headers: { tenant: 'acme' },
  host: {
    machineName: 'customers-1',
    processName: 'Customers.Api',
    processId: 427,
    assembly: 'Customers.Api',
    assemblyVersion: '1.0.0.0',
    frameworkVersion: '8.0.11',
    massTransitVersion: '8.3.4.0',
    operatingSystemVersion: 'Unix 6.1.0.28',
  },
};

function bytes(value: unknown): Buffer {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
}

describe('createEnvelope', () => {
  it('writes the members that a MassTransit consumer needs', () => {
    const envelope = createEnvelope(BusinessUnitChangeV1, MESSAGE, {
      ...OPTIONS,
      source: 'customers',
      hostAddress: 'rabbitmq://broker/prod',
    });
    expect(envelope).toMatchObject({
      bus: 'main',
      exchange: 'Platform.Contracts:IBusinessUnitChangeV1',
      messageId: OPTIONS.messageId,
    });
    expect(JSON.parse(envelope.body)).toEqual({
      messageId: OPTIONS.messageId,
      conversationId: OPTIONS.messageId,
      requestId: null,
      correlationId: null,
      initiatorId: null,
      responseAddress: null,
      faultAddress: null,
      expirationTime: null,
      host: null,
      sourceAddress: 'rabbitmq://broker/prod/customers',
      destinationAddress: 'rabbitmq://broker/prod/Platform.Contracts:IBusinessUnitChangeV1',
      messageType: ['urn:message:Platform.Contracts:IBusinessUnitChangeV1'],
      message: MESSAGE,
      sentTime: '2026-01-05T10:00:01.234Z',
      headers: {},
    });
  });

  it('writes the response address and the expiration time of a request', () => {
    const envelope = createEnvelope(
      ScheduleRecurringTaskInstanceGenerationRequest,
      { facilityId: 501 },
      {
        ...OPTIONS,
        requestId: 'ef375b18-69ee-4a9e-b5ec-44ee1177a27e',
        responseAddress: 'rabbitmq://broker/replies?durable=true&autodelete=true',
        expiresAt: new Date('2026-01-05T10:00:31Z'),
      },
    );
    expect(JSON.parse(envelope.body)).toMatchObject({
      requestId: 'ef375b18-69ee-4a9e-b5ec-44ee1177a27e',
      responseAddress: 'rabbitmq://broker/replies?durable=true&autodelete=true',
      faultAddress: 'rabbitmq://broker/replies?durable=true&autodelete=true',
      destinationAddress: 'exchange:Platform.Contracts:IScheduleRecurringTaskInstanceGenerationRequest',
      expirationTime: '2026-01-05T10:00:31.000Z',
    });
  });

  it('writes correlation, conversation, initiator, source and host', () => {
    const envelope = createEnvelope(BusinessUnitChangeV1, MESSAGE, {
      ...OPTIONS,
      correlationId: 'c-1',
      conversationId: 'v-1',
      initiatorId: 'i-1',
      source: 'customers',
      destinationAddress: 'queue:replies',
      headers: { traceparent: 't' },
      host: hostInfo('customers', '1.2.3'),
    });
    expect(envelope.headers).toEqual({ traceparent: 't' });
    expect(JSON.parse(envelope.body)).toMatchObject({
      correlationId: 'c-1',
      conversationId: 'v-1',
      initiatorId: 'i-1',
      sourceAddress: 'queue:customers',
      destinationAddress: 'queue:replies',
      headers: { traceparent: 't' },
      host: {
        machineName: hostname(),
        processName: 'customers',
        processId: process.pid,
        assembly: 'customers',
        assemblyVersion: '1.2.3',
        frameworkVersion: process.version,
        massTransitVersion: '8.0.0',
        operatingSystemVersion: process.platform,
      },
    });
  });

  it('refuses a message that is too large for every receiver', () => {
    const contract = { ...BusinessUnitChangeV1, schema: z.object({ text: z.string() }) };
    const text = (length: number) => ({ text: 'x'.repeat(length) });
    const { body } = createEnvelope(contract, text(0), OPTIONS);
    const room = MAX_BODY_BYTES - Buffer.byteLength(body);
    expect(Buffer.byteLength(createEnvelope(contract, text(room), OPTIONS).body)).toBe(MAX_BODY_BYTES);
    expect(() => createEnvelope(contract, text(room + 1), OPTIONS)).toThrow(MessageTooLargeError);
  });

  it('refuses a message that breaks its own contract', () => {
    const wrong = { ...MESSAGE, businessUnitId: 7.5 };
    expect(() => createEnvelope(BusinessUnitChangeV1, wrong, OPTIONS)).toThrow(/businessUnitId/);
  });

  it('is read back unchanged', () => {
    const { body } = createEnvelope(BusinessUnitChangeV1, MESSAGE, OPTIONS);
    expect(readEnvelope(bytes(body), ENVELOPE_PROPERTIES)).toMatchObject({
      messageId: OPTIONS.messageId,
      message: MESSAGE,
    });
  });
});

describe('readEnvelope', () => {
  it('reads what a MassTransit publisher writes', () => {
    expect(readEnvelope(bytes(MASSTRANSIT_SAMPLE), ENVELOPE_PROPERTIES)).toEqual({
      format: 'masstransit',
      messageId: MASSTRANSIT_SAMPLE.messageId,
      requestId: MASSTRANSIT_SAMPLE.requestId,
      correlationId: null,
      conversationId: MASSTRANSIT_SAMPLE.conversationId,
      responseAddress: MASSTRANSIT_SAMPLE.responseAddress,
      faultAddress: null,
      expiresAt: new Date('2026-01-05T10:00:31.234Z'),
      messageTypes: MASSTRANSIT_SAMPLE.messageType,
      message: MASSTRANSIT_SAMPLE.message,
      headers: { tenant: 'acme' },
    });
  });

  it('reads the same envelope with PascalCase members, a byte order mark and no content type', () => {
    const pascal = Object.fromEntries(
      Object.entries(MASSTRANSIT_SAMPLE).map(([key, value]) => [
        key.replace(/^./, (c) => c.toUpperCase()),
        value,
      ]),
    );
    const expected = readEnvelope(bytes(MASSTRANSIT_SAMPLE), ENVELOPE_PROPERTIES);
    expect(readEnvelope(bytes('\uFEFF' + JSON.stringify(pascal)), {})).toEqual(expected);
  });

  it('reads a bare JSON object as the message, and the rest from AMQP properties', () => {
    const properties = {
      contentType: 'application/json; charset=utf-8',
      messageId: 'm-1',
      correlationId: 'c-1',
      type: 'Platform.Contracts:IBusinessUnitChangeV1',
      headers: { 'MT-Response-Address': 'queue:replies' },
    };
    expect(readEnvelope(bytes(MESSAGE), properties)).toMatchObject({
      format: 'raw',
      messageId: 'm-1',
      correlationId: 'c-1',
      messageTypes: ['Platform.Contracts:IBusinessUnitChangeV1'],
      responseAddress: 'queue:replies',
      message: MESSAGE,
    });
  });

  it('reads several types from a raw MassTransit header', () => {
    const headers = { 'MT-MessageType': 'urn:message:A:B;urn:message:C:D', 'MT-RequestId': 'r-1' };
    const envelope = readEnvelope(bytes({}), { contentType: 'application/json', headers });
    expect(envelope).toMatchObject({
      messageTypes: ['urn:message:A:B', 'urn:message:C:D'],
      requestId: 'r-1',
    });
  });

  it.each(['MT-Request-Id', 'MT-RequestId', 'RequestId', 'mt-request-id'])(
    'reads a raw header however its sender spells it: %s',
    (name) => {
      expect(readEnvelope(bytes({}), { headers: { [name]: 'r-1' } })).toMatchObject({ requestId: 'r-1' });
    },
  );

  it('reads every known header of a raw message and ignores unknown ones', () => {
    const headers = {
      'MT-MessageId': 'm-2',
      'MT-ConversationId': 'v-1',
      'MT-FaultAddress': 'queue:faults',
      'MT-ExpirationTime': '2026-01-05T10:00:31Z',
      'not-MT-ResponseAddress': 'queue:replies',
    };
    expect(readEnvelope(bytes({}), { headers })).toEqual({
      format: 'raw',
      messageId: 'm-2',
      requestId: null,
      correlationId: null,
      conversationId: 'v-1',
      responseAddress: null,
      faultAddress: 'queue:faults',
      expiresAt: new Date('2026-01-05T10:00:31Z'),
      messageTypes: [],
      message: {},
      headers,
    });
    expect(readEnvelope(bytes({}), { type: '' })).toMatchObject({
      messageId: null,
      expiresAt: null,
      messageTypes: [],
      headers: {},
    });
  });

  it('reads what it can of an envelope with malformed members', () => {
    const odd = { messageType: ['a', 7], message: {}, headers: ['x'], expirationTime: 'soon' };
    expect(readEnvelope(bytes(odd), { messageId: 'm-1' })).toMatchObject({
      format: 'masstransit',
      messageId: 'm-1',
      messageTypes: ['a'],
      headers: {},
      expiresAt: null,
    });
    expect(readEnvelope(bytes({ message: {} }), ENVELOPE_PROPERTIES)).toMatchObject({ messageTypes: [] });
  });

  it.each([
    '',
    'application/json',
    'text/json',
    'application/cloudevents+json',
    'APPLICATION/JSON ; charset=utf-8',
  ])('accepts the content type %p', (contentType) => {
    expect(readEnvelope(bytes({}), { contentType })).toMatchObject({ format: 'raw' });
  });

  it.each(['application/jsonp', 'xapplication/json', 'image/json', 'application/a b+json'])(
    'refuses the content type %p',
    (contentType) => {
      expect(() => readEnvelope(bytes({}), { contentType })).toThrow('the content type is not JSON');
    },
  );

  it('does not mistake a message with a member named message for an envelope', () => {
    const raw = { message: { text: 'hello' }, facilityId: 501 };
    expect(readEnvelope(bytes(raw), {})).toMatchObject({ format: 'raw', message: raw });
  });

  it('ignores identifiers that a table or a header could not hold', () => {
    const envelope = {
      ...MASSTRANSIT_SAMPLE,
      messageId: 'a\u0000b',
      conversationId: 'x'.repeat(1_001),
      requestId: 7,
    };
    expect(readEnvelope(bytes(envelope), ENVELOPE_PROPERTIES)).toMatchObject({
      messageId: null,
      conversationId: null,
      requestId: null,
    });
  });

  it.each([
    ['text that is not JSON', bytes('{"facilityId": secret-'), {}],
    ['nothing', Buffer.alloc(0), {}],
    ['a JSON value that is no object', bytes('[1]'), {}],
    ['an envelope without a message', bytes({ messageType: [] }), ENVELOPE_PROPERTIES],
    [
      'an envelope whose message is a text',
      bytes({ messageType: ['x'], message: 'hello' }),
      ENVELOPE_PROPERTIES,
    ],
    ['another format', bytes({ facilityId: 501 }), { contentType: 'application/vnd.masstransit+bson' }],
    ['a JSON object that says it is XML', bytes({}), { contentType: 'application/xml' }],
  ])('refuses %s', (_what, content, properties) => {
    expect(() => readEnvelope(content, properties)).toThrow(UnreadableMessageError);
  });

  it('does not quote an unreadable body', () => {
    expect(() => readEnvelope(bytes('{"password": "hunter2'), {})).toThrow(/^the body is not JSON$/);
  });
});

describe('createFaultBody', () => {
  const fault = {
    messageName: 'IThing',
    faultedMessageId: '181c0000-6393-3630-36a4-08daf4e7c6da',
    message: { facilityId: 501 },
    error: { type: 'RangeError', message: 'out of range' },
  };
  const body = (overrides: Partial<typeof fault | { faultedMessageId: null }> = {}) =>
    JSON.parse(createFaultBody({ ...fault, ...overrides }, { ...OPTIONS, requestId: 'r-1' })) as {
      message: object;
    };

  it('tells a requester which message failed, and why', () => {
    expect(body()).toMatchObject({
      requestId: 'r-1',
      destinationAddress: '',
      messageType: [
        'urn:message:MassTransit:Fault[[Platform.Contracts:IThing]]',
        'urn:message:MassTransit:Fault',
      ],
      message: {
        faultId: OPTIONS.messageId,
        faultedMessageId: fault.faultedMessageId,
        timestamp: '2026-01-05T10:00:01.234Z',
        exceptions: [{ exceptionType: 'RangeError', message: 'out of range' }],
        faultMessageTypes: ['urn:message:Platform.Contracts:IThing'],
        message: { facilityId: 501 },
      },
    });
    expect(body().message).toHaveProperty('faultedMessageId');
  });

  it.each([null, 'm-1', `x${fault.faultedMessageId}`, `${fault.faultedMessageId}x`])(
    'omits the id %p, which MassTransit could not read',
    (faultedMessageId) => {
      expect(isGuid(faultedMessageId)).toBe(false);
      expect(body({ faultedMessageId }).message).not.toHaveProperty('faultedMessageId');
    },
  );

  it('has a fault type that isFaultUrn distinguishes from other types', () => {
    expect(isFaultUrn('urn:message:MassTransit:Fault[[Platform.Contracts:IThing]]')).toBe(true);
    expect(isFaultUrn('urn:message:MassTransit:ReceiveFault')).toBe(true);
    expect(isFaultUrn('urn:message:Platform.Contracts:Fault')).toBe(false);
    expect(isFaultUrn('x urn:message:MassTransit:Fault')).toBe(false);
  });
});

describe('tryReadEnvelope', () => {
  it('returns the envelope or the error', () => {
    expect(tryReadEnvelope(bytes(MESSAGE), {})).toMatchObject({ format: 'raw', message: MESSAGE });
    expect(tryReadEnvelope(bytes('['), {})).toEqual(new UnreadableMessageError('the body is not JSON'));
  });
});
