import { addressNetworks, clientAddress, trustedProxies } from './client-address';

const PROXIES = trustedProxies('10.0.0.0/8, 192.0.2.7,fd00::/8');

describe('clientAddress', () => {
  it.each<[string | undefined, string | string[] | undefined, string | null]>([
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['::ffff:203.0.113.9', undefined, '203.0.113.9'],
    ['::FFFF:cb00:7109', undefined, '203.0.113.9'],
    ['0:0:0:0:0:ffff:cb00:7109', undefined, '203.0.113.9'],
    ['::ffff:a01:203', '198.51.100.1', '198.51.100.1'],
    // An address that embeds a proxy's IPv4 address is not trusted.
    ['2002:a01:203::1', '198.51.100.1', '2002:a01:203::1'],
    ['64:ff9b::a01:203', '198.51.100.1', '64:ff9b::a01:203'],
    ['fe80::1%eth0', undefined, 'fe80::1'],
    [undefined, '203.0.113.9', null],
    // The peer is not a trusted proxy, so its header is ignored.
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['::ffff:10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
    ['fd00::5', '[2001:DB8::1]:443', '2001:db8::1'],
    // The trusted proxies appended the last entries. Entries before the client's address are not trusted.
    ['10.1.2.3', '1.2.3.4, 198.51.100.1, 192.0.2.7', '198.51.100.1'],
    ['10.1.2.3', ['1.2.3.4', '198.51.100.1'], '198.51.100.1'],
    ['10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
    ['10.1.2.3', "198.51.100.1'; DROP TABLE x", '10.1.2.3'],
    ['10.1.2.3', '10.9.9.9', '10.9.9.9'],
    ['10.1.2.3', '', '10.1.2.3'],
  ])('of %s with X-Forwarded-For %j is %s', (peer, forwardedFor, address) => {
    expect(clientAddress(peer, forwardedFor, PROXIES)).toBe(address);
  });

  it('is the address of the connection if no proxy is trusted', () => {
    expect(clientAddress('10.1.2.3', '198.51.100.1', null)).toBe('10.1.2.3');
  });

  it.each(['', 'proxy.local', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.1,', 'fd00::/x'])(
    'rejects the proxy list %j',
    (list) => {
      expect(() => trustedProxies(list)).toThrow(RangeError);
    },
  );
});

describe('addressNetworks', () => {
  it.each([
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:db8::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
    ['2001:0db8:0000::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
    ['2001:DB8::192.0.2.1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
    ['::1', '0:0:0:0::/64', '0:0:0::/48'],
    ['1:2:3:4::', '1:2:3:4::/64', '1:2:3::/48'],
  ])('of %s are %s and %s', (address, narrow, wide) => {
    expect(addressNetworks(address)).toEqual({ narrow, wide });
  });

  it.each([
    ['itself', '203.0.113.9'],
    ['IPv4-mapped', '::ffff:203.0.113.9'],
    ['IPv4-mapped in hexadecimal', '::ffff:cb00:7109'],
    ['IPv4-mapped in full', '0:0:0:0:0:FFFF:CB00:7109'],
    ['IPv4-translated', '::ffff:0:203.0.113.9'],
    ['NAT64', '64:ff9b::cb00:7109'],
    ['NAT64 with a dotted end', '64:ff9b::203.0.113.9'],
    ['NAT64 of a network of its own', '64:ff9b:1::cb00:7109'],
    ['6to4', '2002:cb00:7109::1'],
    ['6to4, another of its networks', '2002:cb00:7109:ffff::1'],
    ['Teredo', '2001:0:4136:e378:8000:63bf:34ff:8ef6'],
  ])('of an address that embeds an IPv4 address (%s) are that address', (_what, address) => {
    expect(addressNetworks(address)).toEqual({ narrow: '203.0.113.9', wide: null });
  });
});
