import { addressNetwork, clientAddress, trustedProxies } from './client-address';

const PROXIES = trustedProxies('10.0.0.0/8, 192.0.2.7,fd00::/8');

describe('clientAddress', () => {
  it.each<[string | undefined, string | string[] | undefined, string | null]>([
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['::ffff:203.0.113.9', undefined, '203.0.113.9'],
    ['fe80::1%eth0', undefined, 'fe80::1'],
    [undefined, '203.0.113.9', null],
    // Not a proxy of ours: it may claim what it likes.
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['::ffff:10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
    ['fd00::5', '[2001:DB8::1]:443', '2001:db8::1'],
    // The last proxy of ours wrote the last entry; what stands before the client is its own invention.
    ['10.1.2.3', '1.2.3.4, 198.51.100.1, 192.0.2.7', '198.51.100.1'],
    ['10.1.2.3', ['1.2.3.4', '198.51.100.1'], '198.51.100.1'],
    ['10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
    ['10.1.2.3', "198.51.100.1'; DROP TABLE x", '10.1.2.3'],
    ['10.1.2.3', '10.9.9.9', '10.9.9.9'],
    ['10.1.2.3', '', '10.1.2.3'],
  ])('of %s with X-Forwarded-For %j is %s', (peer, forwardedFor, address) => {
    expect(clientAddress(peer, forwardedFor, PROXIES)).toBe(address);
  });

  it('is that of the connection when no proxy is trusted', () => {
    expect(clientAddress('10.1.2.3', '198.51.100.1', null)).toBe('10.1.2.3');
  });

  it.each(['', 'proxy.local', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.1,', 'fd00::/x'])(
    'does not take %j for proxies',
    (list) => {
      expect(() => trustedProxies(list)).toThrow(RangeError);
    },
  );
});

describe('addressNetwork', () => {
  it.each([
    ['203.0.113.9', '203.0.113.9'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0db8:0000::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['1:2:3:4::', '1:2:3:4::/64'],
  ])('of %s is %s', (address, network) => {
    expect(addressNetwork(address)).toBe(network);
  });
});
