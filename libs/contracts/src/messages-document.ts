import { isRequest, type MessageContract, messageJsonSchema } from './message-contract';

/** The subset of JSON Schema that the contracts use. */
interface FieldSchema {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly items?: FieldSchema;
  readonly anyOf?: readonly FieldSchema[];
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[];
}

const INTRODUCTION = `# Messages

Generated from \`libs/contracts/src\` — do not edit. A unit test fails when this file is out of date; rewrite it with
\`UPDATE_DOCS=1 npx jest --config jest.unit.cjs --roots libs/contracts\`.

Each message type has a durable fanout exchange \`<namespace>:<name>\` (namespace \`Platform.Contracts\` unless configured otherwise),
bound to the durable quorum queue of each of its consumers. A message that needs a receiver is not sent until a queue is bound to its
exchange; any other event is sent whether or not anybody subscribes. The body is the MassTransit v8 JSON envelope
(\`application/vnd.masstransit+json\`) whose \`messageType\` contains \`urn:message:<namespace>:<name>\`; a bare JSON message
(\`application/json\`) is accepted too. Replies go to the envelope's \`responseAddress\` or to AMQP's \`reply-to\`.

The events of one type and one facility reach their exchange in order. Order across types holds only while every exchange accepts
messages: if a queue behind one exchange refuses them (because it is full, for example), the events of that type wait, for all
facilities, and events of other types are still sent. The oldest waiting event is sent again as a probe, at intervals of 1 s to 5 min,
so receivers may get it several times before its turn; they recognise it by its \`messageId\`. A receiver that depends on the order
declares its queue with \`x-single-active-consumer\`. Without it, messages that were delivered to a consumer or broker node that failed
are delivered again, marked \`redelivered\`, after later ones. The headers \`traceparent\` (W3C Trace Context) and \`MT-Activity-Id\` (the
same value under MassTransit's name) carry the trace.

Messages only grow: receivers ignore fields they do not know, and a breaking change is a new \`…V2\` type. A message that its
receiver cannot read, or that violates its contract, goes to \`<queue>_error\`; one of an unknown type goes to \`<queue>_skipped\`.
The header \`x-error-reason\` holds the reason: \`unreadable\`, \`invalid\`, \`unknown-type\`, \`failed\` or \`unanswered\`.

A body is JSON in UTF-8 of at most 1,048,576 bytes, nested at most 64 levels; anything else is \`unreadable\`. When a message moves to
another queue, at most 32,768 bytes of the sender's headers move with it, the smallest headers first; \`x-headers-dropped\` holds the
number of headers dropped.

Send a \`messageId\`: a repeated message then takes effect once, and gets the first reply again. An event without an id is deduplicated
by a hash of its content and exchange for 30 days. An id identifies one message: a different message with the same id goes to
\`<queue>_error\` as \`invalid\` and, if it is a request, gets a fault in reply. The order of JSON members makes no difference. A request
without an id is assigned one on arrival, so every copy of it is carried out.

## Faults

The reply to a request that is refused or fails permanently is MassTransit's fault: \`messageType\` contains
\`urn:message:MassTransit:Fault[[<namespace>:<name of the request>]]\` and \`urn:message:MassTransit:Fault\`, and \`message\` is

| field | type | |
|---|---|---|
| \`faultId\` | UUID | required |
| \`faultedMessageId\` | UUID | optional: the request's own id |
| \`timestamp\` | instant (ISO 8601 with offset) | required |
| \`exceptions\` | array of {exceptionType: string, message: string} | required |
| \`faultMessageTypes\` | array of string | required |
| \`host\` | {machineName: string, processName: string, …} | required |
| \`message\` | the request | required |

It is sent once: to the request's \`faultAddress\`, else to its \`responseAddress\`, else to AMQP's \`reply-to\`. A response that the
broker refuses (no permission, a full queue) is attempted five times. Then the request goes to \`<queue>_error\` as \`unanswered\`, although
it was carried out: replaying it sends the stored response again. If the reply address no longer exists, the response is dropped; this is
not an error.
`;

/** Returns the text of docs/messages.md. */
export function messagesDocument(contracts: readonly MessageContract<unknown>[]): string {
  const overview = ['| message | bus | meaning |', '|---|---|---|', ...contracts.map(overviewRow)];
  return [INTRODUCTION, overview.join('\n'), '', ...contracts.map((one) => section(one, contracts))].join(
    '\n',
  );
}

function overviewRow({ name, bus, description }: MessageContract<unknown>): string {
  return `| [\`${name}\`](#${name.toLowerCase()}) | ${bus} | ${description} |`;
}

function section(contract: MessageContract<unknown>, all: readonly MessageContract<unknown>[]): string {
  const fields = rows(messageJsonSchema(contract));
  const first = all.find((other) => rows(messageJsonSchema(other)).join() === fields.join()) ?? contract;
  const responses = isRequest(contract)
    ? [`The reply is \`${contract.succeeded.name}\` or \`${contract.failed.name}\`.`, '']
    : [];
  const table =
    first === contract
      ? ['| field | type | |', '|---|---|---|', ...fields]
      : [`Same fields as [\`${first.name}\`](#${first.name.toLowerCase()}).`];
  return [
    `## ${contract.name}`,
    '',
    `${contract.description} Bus: ${contract.bus}.${contract.needsReceiver ? ' Needs a receiver.' : ''}`,
    '',
    ...responses,
    ...table,
    '',
  ].join('\n');
}

function rows({ properties = {}, required = [] }: FieldSchema): string[] {
  return Object.entries(properties).map(
    ([field, schema]) =>
      `| \`${field}\` | ${typeText(schema)} | ${required.includes(field) ? 'required' : 'optional'} |`,
  );
}

function typeText(schema: FieldSchema): string {
  if (schema.anyOf) return schema.anyOf.map(typeText).join(' or ');
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(', ');
  if (schema.properties) {
    const members = Object.entries(schema.properties).map(([name, member]) => `${name}: ${typeText(member)}`);
    return `{${members.join(', ')}}`;
  }
  if (schema.type === 'array') return `array of ${schema.items ? typeText(schema.items) : 'anything'}`;
  if (schema.format === 'date-time') return 'instant (ISO 8601 with offset)';
  if (schema.format === 'uuid') return 'UUID';
  return [schema.type ?? 'anything'].flat().join(' or ');
}
