import { z } from 'zod';

const PARTS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;

/**
 * Returns one address per host of `scheme://user:password@host1:port1,host2:port2/name?…` (libpq's syntax);
 * an address of one host is returned unchanged. The nodes of a cluster share everything but host and port.
 * Does not validate: see `serverAddresses`.
 */
export function addressesOf(text: string): string[] {
  const [, before, hosts, after] = PARTS.exec(text) ?? [];
  if (!hosts?.includes(',')) return [text];
  return hosts.split(',').map((host) => `${before}${host}${after}`);
}

/**
 * Returns the same addresses in random order, so that the connections of many processes spread over the
 * hosts.
 */
export function shuffledAddressesOf(text: string): string[] {
  const keyed = addressesOf(text).map((address): [number, string] => [Math.random(), address]);
  return keyed.sort(([a], [b]) => a - b).map(([, address]) => address);
}

/**
 * Returns a schema for the address of a server, or of the nodes of one cluster.
 * @param protocol e.g. `/^amqps?:$/`
 * @param example shown in the error message
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
    // The message does not quote the text, which may hold a password.
    const message = `${which}must look like ${example}, several hosts with commas between them`;
    context.issues.push({ code: 'custom', message, input: context.value });
  });
}

/** Schema for variables that name a PostgreSQL database. */
export const postgresAddresses = serverAddresses(
  /^postgres(ql)?:$/,
  'postgres://user:password@host:5432/name',
).refine(
  (text) => ['any', 'read-write', null].includes(sessionAttributes(text)),
  'target_session_attrs must be any or read-write',
);

/** Schema for variables that name a RabbitMQ virtual host. */
export const brokerAddresses = serverAddresses(/^amqps?:$/, 'amqp://user:password@host:5672/vhost');

/** Returns libpq's parameter `target_session_attrs`; null if it is not set. */
export function sessionAttributes(text: string): string | null {
  const [address = ''] = addressesOf(text);
  return URL.canParse(address) ? new URL(address).searchParams.get('target_session_attrs') : null;
}
