import { stringify } from 'yaml';
import {
  type Bus,
  isRequest,
  type MessageContract,
  messageJsonSchema,
  type RequestContract,
} from './message-contract';

const NAMESPACE = 'Platform.Contracts';
const CONTENT_TYPE = 'application/vnd.masstransit+json';

const DESCRIPTION =
  'The messages that the task service sends and receives. Generated from libs/contracts/src; do not edit. Each message type has a durable fanout ' +
  'exchange <namespace>:<name>; the namespace is Platform.Contracts unless configured otherwise. Messages only grow: receivers ignore ' +
  'fields they do not know, and a breaking change is a new V2 type. Replies to requests go to the responseAddress of the envelope. ' +
  'A body is JSON in UTF-8 of at most 1,048,576 bytes and 64 levels.';

const BUSES: Readonly<Record<Bus, string>> = {
  main: 'The main bus of the platform',
  scheduling: 'The scheduling bus: the same broker and virtual host as the main bus, or a separate one',
};

/**
 * The messages that the task service sends and receives, by wire name; replies to requests are not listed.
 * Source: task messaging spec, message flows.
 */
export interface ServiceOperations {
  readonly sends: readonly string[];
  readonly receives: readonly string[];
}

export const TASK_SERVICE_OPERATIONS: ServiceOperations = {
  sends: [
    'ScheduleCreatedEvent',
    'TaskInstanceCompletedEvent',
    'ScheduleUpdatedEvent',
    'SchedulePausedEvent',
    'ScheduleResumedEvent',
    'ScheduleRemovedEvent',
    'TaskInstanceCancelledEvent',
    'ITaskInstanceGenerationRequested',
    'ScheduledMessageEvent',
    // Sent by the command endpoints of the service.
    'IScheduleRecurringTaskInstanceGenerationRequest',
    'IUnscheduleRecurringTaskInstanceGenerationRequest',
  ],
  receives: [
    'IBusinessUnitChangeV1',
    'IScheduleCreatedEvent',
    'ITaskInstanceGenerationRequested',
    'IScheduleRecurringTaskInstanceGenerationRequest',
    'IUnscheduleRecurringTaskInstanceGenerationRequest',
  ],
};

type Contract = MessageContract<unknown>;
type Request = RequestContract<unknown, unknown, unknown>;

const SERVERS = Object.fromEntries(
  Object.entries(BUSES).map(([bus, description]) => [
    bus,
    { host: 'localhost:5672', protocol: 'amqp', protocolVersion: '0.9.1', description },
  ]),
);

/**
 * Returns the text of docs/asyncapi.yaml: an AsyncAPI 3.0 document from the point of view of one service.
 * @param version version of the release
 */
export function asyncApiDocument(
  contracts: readonly Contract[],
  operations: ServiceOperations,
  version: string,
): string {
  const requests = contracts.filter(isRequest);
  const responses = new Set<Contract>(requests.flatMap(({ succeeded, failed }) => [succeeded, failed]));
  const ownChannel = contracts.filter((contract) => !responses.has(contract));
  const document = {
    asyncapi: '3.0.0',
    info: { title: 'Task service messages', version, description: DESCRIPTION },
    defaultContentType: CONTENT_TYPE,
    servers: SERVERS,
    channels: Object.fromEntries<object>([
      ...ownChannel.map((contract) => [contract.name, channel(contract)] as const),
      ...requests.map((request) => [replyChannelName(request), replyChannel(request)] as const),
    ]),
    operations: Object.fromEntries([
      ...operations.sends.map((name) => operation('send', contractOf(ownChannel, name))),
      ...operations.receives.map((name) => operation('receive', contractOf(ownChannel, name))),
    ]),
    components: {
      messages: componentMessages(contracts),
      schemas: {
        Envelope: ENVELOPE,
        Fault: FAULT,
        ...Object.fromEntries(contracts.map((contract) => [contract.name, schema(contract)])),
      },
    },
  };
  // Quotes every string, so that no parser reads one as another type. Writes an object that is used twice in
  // full both times.
  return stringify(document, {
    aliasDuplicateObjects: false,
    defaultKeyType: 'PLAIN',
    defaultStringType: 'QUOTE_DOUBLE',
    keepUndefined: false,
    lineWidth: 0,
  });
}

function channel(contract: Contract): object {
  const exchange = `${NAMESPACE}:${contract.name}`;
  return {
    address: exchange,
    title: contract.name,
    servers: [reference(`servers/${contract.bus}`)],
    messages: messagesOf([contract]),
    bindings: {
      amqp: {
        is: 'routingKey',
        exchange: { name: exchange, type: 'fanout', durable: true, autoDelete: false },
        bindingVersion: '0.3.0',
      },
    },
  };
}

/**
 * Returns the channel of the replies to a request. It has no address, because each request names the address
 * for its reply.
 */
function replyChannel(request: Request): object {
  return {
    address: null,
    title: `Replies to ${request.name}`,
    servers: [reference(`servers/${request.bus}`)],
    messages: {
      ...messagesOf([request.succeeded, request.failed]),
      Fault: reference('components/messages/Fault'),
    },
  };
}

function operation(action: 'send' | 'receive', contract: Contract): [string, object] {
  return [
    `${action}-${contract.name}`,
    {
      action,
      summary: contract.description,
      channel: reference(`channels/${contract.name}`),
      messages: [reference(`channels/${contract.name}/messages/${contract.name}`)],
      reply: isRequest(contract) ? reply(contract) : undefined,
      bindings:
        action === 'send'
          ? { amqp: { mandatory: contract.needsReceiver, bindingVersion: '0.3.0' } }
          : undefined,
    },
  ];
}

function reply(request: Request): object {
  const channelName = replyChannelName(request);
  return {
    address: { location: '$message.payload#/responseAddress' },
    channel: reference(`channels/${channelName}`),
    messages: [request.succeeded.name, request.failed.name, 'Fault'].map((name) =>
      reference(`channels/${channelName}/messages/${name}`),
    ),
  };
}

const UUID = { type: 'string', format: 'uuid' };
const TEXT = { type: 'string' };
const OPTIONAL_UUID = { type: ['string', 'null'], format: 'uuid' };
const OPTIONAL_TEXT = { type: ['string', 'null'] };

/** The members of the MassTransit v8 JSON envelope that the services write and read. */
const ENVELOPE = {
  type: 'object',
  description: 'The MassTransit v8 JSON envelope',
  required: ['messageId', 'messageType', 'message'],
  properties: {
    messageId: UUID,
    requestId: OPTIONAL_UUID,
    correlationId: OPTIONAL_UUID,
    conversationId: UUID,
    initiatorId: OPTIONAL_UUID,
    sourceAddress: TEXT,
    destinationAddress: TEXT,
    responseAddress: OPTIONAL_TEXT,
    faultAddress: OPTIONAL_TEXT,
    messageType: { type: 'array', items: TEXT },
    message: { type: 'object' },
    expirationTime: { type: ['string', 'null'], format: 'date-time' },
    sentTime: { type: 'string', format: 'date-time' },
    headers: { type: 'object' },
    host: { type: 'object' },
  },
};

function componentMessages(contracts: readonly Contract[]): object {
  const messages = contracts.map((contract) => [contract.name, message(contract)] as const);
  return { ...Object.fromEntries(messages), Fault: FAULT_MESSAGE };
}

const FAULT_DESCRIPTION = 'Reply to a request that was refused or failed permanently';

/** MassTransit's fault message, written by `createFaultBody` of libs/messaging. */
const FAULT = {
  type: 'object',
  description: FAULT_DESCRIPTION,
  required: ['faultId', 'timestamp', 'exceptions', 'host', 'faultMessageTypes', 'message'],
  properties: {
    faultId: UUID,
    faultedMessageId: UUID,
    timestamp: { type: 'string', format: 'date-time' },
    exceptions: {
      type: 'array',
      items: {
        type: 'object',
        required: ['exceptionType', 'message'],
        properties: { exceptionType: TEXT, message: TEXT },
      },
    },
    host: { type: 'object' },
    faultMessageTypes: { type: 'array', items: TEXT },
    message: { type: 'object' },
  },
};

const FAULT_MESSAGE = {
  name: 'Fault',
  title: `MassTransit:Fault[[${NAMESPACE}:<name of the request>]]`,
  summary: FAULT_DESCRIPTION,
  contentType: CONTENT_TYPE,
  payload: {
    allOf: [
      reference('components/schemas/Envelope'),
      {
        type: 'object',
        properties: {
          messageType: {
            type: 'array',
            contains: { type: 'string', const: 'urn:message:MassTransit:Fault' },
          },
          message: reference('components/schemas/Fault'),
        },
      },
    ],
  },
};

function message(contract: Contract): object {
  const urn = { type: 'string', const: `urn:message:${NAMESPACE}:${contract.name}` };
  const content = {
    messageType: { type: 'array', contains: urn },
    message: reference(`components/schemas/${contract.name}`),
  };
  return {
    name: contract.name,
    title: contract.name,
    summary: contract.description,
    contentType: CONTENT_TYPE,
    payload: { allOf: [reference('components/schemas/Envelope'), { type: 'object', properties: content }] },
  };
}

function schema(contract: Contract): object {
  // Omits `$schema`: AsyncAPI implies its own dialect, in which the members used here mean the same.
  return { ...messageJsonSchema(contract), $schema: undefined };
}

function messagesOf(contracts: readonly Contract[]): object {
  return Object.fromEntries(contracts.map(({ name }) => [name, reference(`components/messages/${name}`)]));
}

function reference(path: string): object {
  return { $ref: `#/${path}` };
}

function replyChannelName({ name }: Request): string {
  return `${name}-answers`;
}

function contractOf(contracts: readonly Contract[], name: string): Contract {
  const found = contracts.find((contract) => contract.name === name);
  if (!found) throw new Error(`no contract has the name ${name}`);
  return found;
}
