import { BlockList, isIP } from 'node:net';

const MAX_HOPS = 32;

/**
 * Parses the proxies whose X-Forwarded-For is trusted: comma-separated addresses and CIDR ranges.
 * @throws {RangeError} for anything else
 */
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

/**
 * Returns the client's address, or null if it is unknown. It is the address of the connection, unless that is
 * a trusted proxy. Then X-Forwarded-For is read from its end up to the first address that is not a trusted
 * proxy; entries further left come from untrusted senders.
 * @param proxies null: no proxy is trusted
 */
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

/**
 * Normalises an address: no port, brackets or zone, and IPv4-mapped as IPv4. Null if it is not an address.
 */
function canonicalAddress(text: string): string | null {
  const trimmed = text.trim();
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed;
  const address = bare.replace(/%.*$/, '');
  if (isIP(address) === 0) return null;
  const groups = isIP(address) === 6 ? groupsOf(address) : [];
  return startsWith(groups, IPV4_MAPPED) ? ipv4Of(groups, 6) : address.toLowerCase();
}

/**
 * The networks whose requests are counted together. IPv4: the address. IPv6: the /64 network, the smallest
 * that a site is assigned (RFC 6177), and the /48 network, the largest. An IPv6 address that embeds an IPv4
 * address counts as that IPv4 address. Otherwise all clients of a NAT64 gateway would share one network, and
 * with 6to4 the owner of one IPv4 address would have 65,536 networks.
 */
export interface AddressNetworks {
  /** The IPv4 address or the /64 network. */
  readonly narrow: string;
  /** The /48 network; null for IPv4. */
  readonly wide: string | null;
}

export function addressNetworks(address: string): AddressNetworks {
  if (isIP(address) !== 6) return { narrow: address, wide: null };
  const groups = groupsOf(address);
  const embedded = embeddedIpv4(groups);
  if (embedded !== null) return { narrow: embedded, wide: null };
  const texts = groups.map((group) => group.toString(16));
  return { narrow: `${texts.slice(0, 4).join(':')}::/64`, wide: `${texts.slice(0, 3).join(':')}::/48` };
}

/**
 * Returns the widest network that one party may control: an IPv4 address, or a /48 network, because an IPv6
 * site can have 65,536 networks of size /64. Returns `unknown` for null.
 */
export function sharedNetwork(address: string | null): string {
  if (address === null) return 'unknown';
  const { narrow, wide } = addressNetworks(address);
  return wide ?? narrow;
}

const IPV4_MAPPED = [0, 0, 0, 0, 0, 0xffff];

/**
 * Prefixes of IPv6 addresses that embed an IPv4 address, and the group at which it starts. Sources: RFC 4291
 * (mapped), RFC 7915 (translated), RFC 6052 and RFC 8215 (NAT64), RFC 3056 (6to4).
 */
const EMBEDDING: readonly (readonly [prefix: readonly number[], at: number])[] = [
  [IPV4_MAPPED, 6],
  [[0, 0, 0, 0, 0xffff, 0], 6],
  [[0x64, 0xff9b, 0, 0, 0, 0], 6],
  [[0x64, 0xff9b, 1], 6],
  [[0x2002], 1],
];
/** Prefix of Teredo addresses (RFC 4380). The client's IPv4 address is at the end, with all bits inverted. */
const TEREDO = [0x2001, 0];

function embeddedIpv4(groups: readonly number[]): string | null {
  const found = EMBEDDING.find(([prefix]) => startsWith(groups, prefix));
  if (found !== undefined) return ipv4Of(groups, found[1]);
  if (!startsWith(groups, TEREDO)) return null;
  return ipv4Of(
    groups.map((group) => group ^ 0xffff),
    6,
  );
}

function startsWith(groups: readonly number[], prefix: readonly number[]): boolean {
  return groups.length > 0 && prefix.every((group, index) => groups[index] === group);
}

function ipv4Of(groups: readonly number[], at: number): string {
  const [high = 0, low = 0] = groups.slice(at, at + 2);
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

/** Returns the eight groups of an IPv6 address in any spelling. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const left = groupsIn(head);
  const right = groupsIn(tail ?? '');
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array<number>(Math.max(0, zeros)).fill(0), ...right];
}

function groupsIn(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
