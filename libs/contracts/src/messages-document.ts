import { isRequest, type MessageContract, messageJsonSchema } from './message-contract';

/** The part of JSON Schema that the contracts use. */
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
bound to the durable quorum queues of those who consume it. A message that needs a receiver is not sent while no queue takes it; any
other event is sent whether or not anybody subscribes. The body is the MassTransit v8 JSON envelope
(\`application/vnd.masstransit+json\`) whose \`messageType\` holds \`urn:message:<namespace>:<name>\`; a bare JSON message
(\`application/json\`) is understood too. Answers go to the envelope's \`responseAddress\` or to AMQP's \`reply-to\`.
The events of one type of a facility come to their exchange in order. Types wait for each other only as long as all are taken: when a
queue behind one type's exchange refuses messages (it is full, say), the events of that type wait, for all facilities, and those of
other types go on. From time to time the oldest waiting event is sent as a probe, so its receivers may get it several times before
its turn; they know it by its \`messageId\`. A receiver to whom order matters declares its queue with
\`x-single-active-consumer\`: else what a lost consumer or broker node had been sent comes again, \`redelivered\`, behind later ones.
The headers \`traceparent\` (W3C Trace Context) and \`MT-Activity-Id\` (the same, as MassTransit names it) carry the trace.

Messages only grow: receivers ignore fields they do not know, and a breaking change is a new \`…V2\` type. A message that its
receiver cannot read, or that breaks its contract, ends in \`<queue>_error\`; one of an unknown type in \`<queue>_skipped\`.
The header \`x-error-reason\` says why: \`unreadable\`, \`invalid\`, \`unknown-type\`, \`failed\` or \`unanswered\`.

A body is JSON in UTF-8, 1,048,576 bytes at most, nested 64 levels at most; anything else is \`unreadable\`. Of the sender's headers
32,768 bytes are kept on the way to another queue, the small ones first; \`x-headers-dropped\` counts the rest.

Send a \`messageId\`: a repetition then takes effect once, and gets the first answer again. An event without one is known by a hash of
its content and exchange for 30 days. An id belongs to one message: another one under it goes to \`<queue>_error\` as \`invalid\`, and
where it is a request it is answered with a fault. The order of members does not make another message. A request without an id is
given one on arrival, so each copy that is sent is carried out.

## Faults

A request that is refused or fails for good is answered with MassTransit's fault: \`messageType\` holds
\`urn:message:MassTransit:Fault[[<namespace>:<name of the request>]]\` and \`urn:message:MassTransit:Fault\`, \`message\` is

| field | type | |
|---|---|---|
| \`faultId\` | UUID | required |
| \`faultedMessageId\` | UUID | optional: the request's own id |
| \`timestamp\` | instant (ISO 8601 with offset) | required |
| \`exceptions\` | array of {exceptionType: string, message: string} | required |
| \`faultMessageTypes\` | array of string | required |
| \`host\` | {machineName: string, processName: string, …} | required |
| \`message\` | the request | required |

It goes to the request's \`faultAddress\`, else to its \`responseAddress\`, else to AMQP's \`reply-to\`, and is sent once. A response that
is refused there (no permission, a full queue) is sent five times; then the request lies in \`<queue>_error\` as \`unanswered\`. It was
carried out: a replay sends the stored response again. An address that has gone takes nothing and is no error.
`;

/** The text of docs/messages.md. */
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
    ? [`Answered with \`${contract.succeeded.name}\` or \`${contract.failed.name}\`.`, '']
    : [];
  const table =
    first === contract
      ? ['| field | type | |', '|---|---|---|', ...fields]
      : [`Fields as [\`${first.name}\`](#${first.name.toLowerCase()}).`];
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
