import { addressesOf } from '@platform/service-defaults';

/** A MassTransit destination. `endpoint` is an exchange with a queue of the same name behind it. */
export interface Address {
  readonly kind: 'endpoint' | 'queue' | 'exchange';
  readonly name: string;
}

/**
 * Maximum bytes of UTF-8 in the name of an exchange or a queue, a routing key or a text property. Source:
 * AMQP 0-9-1, short strings.
 */
const SHORT_STRING_BYTES = 255;

const BROKER_SCHEMES = new Set(['rabbitmq:', 'rabbitmqs:', 'amqp:', 'amqps:']);

/**
 * Parses `rabbitmq://host[:port][/vhost]/name[?…]` and the short forms `queue:name`, `exchange:name`,
 * `topic:name`. The host is ignored, because responses go to the broker that delivered the request. Null for
 * any other text, and for a name too long for AMQP.
 */
export function parseAddress(text: string): Address | null {
  const short = /^(queue|exchange|topic):(?!\/\/)([^?]+)/i.exec(text);
  if (short !== null) {
    const name = decoded(short[2] ?? '');
    const kind = short[1]?.toLowerCase() === 'queue' ? 'queue' : 'exchange';
    return isName(name) ? { kind, name } : null;
  }
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const name = decoded(url.pathname.split('/').at(-1) ?? '');
  return BROKER_SCHEMES.has(url.protocol) && isName(name) ? { kind: 'endpoint', name } : null;
}

/** Whether a text fits into an AMQP property. */
export function fitsProperty(text: string): boolean {
  return Buffer.byteLength(text) <= SHORT_STRING_BYTES;
}

function isName(name: string): boolean {
  return name !== '' && fitsProperty(name);
}

/**
 * Returns the MassTransit host address of an AMQP URL, without credentials: `rabbitmq://host[:port][/vhost]`.
 * If the URL names several hosts, the first is used.
 * @throws {Error} if the URL is not an AMQP URL; the text does not repeat the URL, which may hold a password
 */
export function hostAddress(amqpUrl: string): string {
  const [address] = addressesOf(amqpUrl) as [string];
  if (!URL.canParse(address)) throw new Error('not an AMQP URL (value withheld)');
  const url = new URL(address);
  if (!['amqp:', 'amqps:'].includes(url.protocol) || !url.hostname)
    throw new Error('not an AMQP URL (value withheld)');
  const port = url.port && url.port !== '5672' ? `:${url.port}` : '';
  const vhost = decoded(url.pathname.slice(1));
  const path = vhost === '' || vhost === '/' ? '' : `/${encodeURIComponent(vhost)}`;
  return `rabbitmq://${url.hostname}${port}${path}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}
