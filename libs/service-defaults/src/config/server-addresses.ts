import { z } from 'zod';

const PARTS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;

/**
 * One address per host of `scheme://user:password@host1:port1,host2:port2/name?…`, in libpq's way; an address
 * of one host is returned as it is. Nodes of a cluster share everything but host and port. Not checked: see
 * `serverAddresses`.
 */
export function addressesOf(text: string): string[] {
  const [, before, hosts, after] = PARTS.exec(text) ?? [];
  if (!hosts?.includes(',')) return [text];
  return hosts.split(',').map((host) => `${before}${host}${after}`);
}

/** The same in random order, so that the connections of many processes spread over the hosts. */
export function shuffledAddressesOf(text: string): string[] {
  const keyed = addressesOf(text).map((address): [number, string] => [Math.random(), address]);
  return keyed.sort(([a], [b]) => a - b).map(([, address]) => address);
}

/**
 * A variable with the address of a server, or of the nodes of one cluster.
 * @param protocol e.g. `/^amqps?:$/`
 * @param example said when it is wrong
 */
function serverAddresses(protocol: RegExp, example: string): z.ZodString {
  const isAddress = (text: string): boolean =>
    URL.canParse(text) &&
    protocol.test(new URL(text).protocol) &&
    new URL(text).hostname !== '' &&
    !new URL(text).pathname.startsWith('//');
  return z.string().check((context) => {
    const addresses = addressesOf(context.value);
    const wrong = addresses.findIndex((address) => !isAddress(address));
    if (wrong === -1) return;
    const which = addresses.length === 1 ? '' : `host ${wrong + 1} of ${addresses.length} is wrong: `;
    // Not the text itself: it may hold a password.
    const message = `${which}must look like ${example}, several hosts with commas between them`;
    context.issues.push({ code: 'custom', message, input: context.value });
  });
}

/** Variables that name a PostgreSQL database. */
export const postgresAddresses = serverAddresses(
  /^postgres(ql)?:$/,
  'postgres://user:password@host:5432/name',
).refine(
  (text) => ['any', 'read-write', null].includes(sessionAttributes(text)),
  'target_session_attrs must be any or read-write',
);

/** Variables that name a RabbitMQ virtual host. */
export const brokerAddresses = serverAddresses(/^amqps?:$/, 'amqp://user:password@host:5672/vhost');

/** What libpq's parameter says of the session that is wanted; null without. */
export function sessionAttributes(text: string): string | null {
  const [address = ''] = addressesOf(text);
  return URL.canParse(address) ? new URL(address).searchParams.get('target_session_attrs') : null;
}
