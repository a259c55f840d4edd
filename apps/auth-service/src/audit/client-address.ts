import { BlockList, isIP } from 'node:net';

const MAX_HOPS = 32;

/** The proxies whose X-Forwarded-For is believed: addresses and CIDR ranges separated by commas.
 *  @throws {RangeError} for anything else */
export function trustedProxies(list: string): BlockList {
  const proxies = new BlockList();
  for (const entry of list.split(',').map((each) => each.trim())) {
    const [address = '', prefix, ...rest] = entry.split('/');
    const version = isIP(address);
    const bits = prefix === undefined ? NaN : Number(prefix);
    if (version === 0 || rest.length > 0) throw new RangeError('not an address or CIDR range');
    const family = version === 4 ? 'ipv4' : 'ipv6';
    if (prefix === undefined) proxies.addAddress(address, family);
    else if (/^\d{1,3}$/.test(prefix) && bits <= (version === 4 ? 32 : 128))
      proxies.addSubnet(address, bits, family);
    else throw new RangeError('not an address or CIDR range');
  }
  return proxies;
}

/** The address a request comes from: that of the connection, or, while that is a trusted proxy, what X-Forwarded-For says, read
 *  from its end: whatever stands further left was written by somebody we have no reason to believe. Null when unknown.
 *  @param proxies null: none is trusted */
export function clientAddress(
  peer: string | undefined,
  forwardedFor: string | string[] | undefined,
  proxies: BlockList | null,
): string | null {
  let address = canonicalAddress(peer ?? '');
  if (address === null || proxies === null || forwardedFor === undefined) return address;
  const hops = [forwardedFor].flat().join(',').split(',').slice(-MAX_HOPS);
  while (isTrusted(address, proxies) && hops.length > 0) {
    const next = canonicalAddress(hops.pop() ?? '');
    if (next === null) return address;
    address = next;
  }
  return address;
}

function isTrusted(address: string, proxies: BlockList): boolean {
  return proxies.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

/** An address in one spelling: no port, no brackets, no zone, and IPv4 as IPv4. Null for what is none. */
function canonicalAddress(text: string): string | null {
  const trimmed = text.trim();
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed;
  const address = bare.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
  return isIP(address) === 0 ? null : address.toLowerCase();
}

/** The part of an address that one client cannot leave: an IPv4 address, or the /64 network of an IPv6 address.
 *  Source: RFC 6177, a /64 is the least a site is given. */
export function addressNetwork(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros =
    tail === undefined ? [] : Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  const groups = [...left, ...zeros, ...right].slice(0, 4);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`;
}
