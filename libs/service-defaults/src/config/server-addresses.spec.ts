import { addressesOf, brokerAddresses, postgresAddresses, shuffledAddressesOf } from './server-addresses';

const THREE = 'postgres://app:p%40ss@a:5432,b:5433,[::1]/task?target_session_attrs=read-write';

describe('addressesOf', () => {
  it('returns an address of one host unchanged', () => {
    expect(addressesOf('postgres://app:pw@db/task')).toEqual(['postgres://app:pw@db/task']);
  });

  it('returns one address per host with everything else', () => {
    expect(addressesOf(THREE)).toEqual([
      'postgres://app:p%40ss@a:5432/task?target_session_attrs=read-write',
      'postgres://app:p%40ss@b:5433/task?target_session_attrs=read-write',
      'postgres://app:p%40ss@[::1]/task?target_session_attrs=read-write',
    ]);
    expect(addressesOf('amqp://a,b:5673')).toEqual(['amqp://a', 'amqp://b:5673']);
  });

  it('does not split at commas elsewhere', () => {
    expect(addressesOf('postgres://app:p,w@db/a,b?options=c,d')).toHaveLength(1);
  });

  it('has a variant in random order', () => {
    const firsts = Array.from({ length: 60 }, () => shuffledAddressesOf('amqp://a,b,c')[0]);
    expect(new Set(firsts)).toEqual(new Set(['amqp://a', 'amqp://b', 'amqp://c']));
  });
});

describe('a variable with addresses', () => {
  const problems = (schema: typeof postgresAddresses, text: string): string[] =>
    schema.safeParse(text).error?.issues.map(({ message }) => message) ?? [];

  it.each(['postgres://app:pw@db/task', 'postgresql://db', THREE])('may be %s', (text) => {
    expect(problems(postgresAddresses, text)).toEqual([]);
  });

  it.each([
    ['postgres://app:hunter2@a:5432,/task', 'host 2 of 2 is wrong: must look like postgres://'],
    ['postgres://app:hunter2@a:x,b/task', 'host 1 of 2 is wrong: must look like postgres://'],
    ['postgres://app:hunter2@a,postgres://b/task', 'of 2 is wrong'],
    ['mysql://hunter2@db', 'must look like postgres://'],
    ['postgres://a,b/hunter2?target_session_attrs=standby', 'must be any or read-write'],
  ])('may not be %s', (text, expected) => {
    const [message] = problems(postgresAddresses, text);
    expect(message).toContain(expected);
    expect(message).not.toContain('hunter2');
  });

  it('is validated alike for brokers', () => {
    expect(problems(brokerAddresses, 'amqps://u:p@rabbit-0:5671,rabbit-1:5671/prod')).toEqual([]);
    expect(problems(brokerAddresses, 'amqp://a,b:99999')).toEqual([
      'host 2 of 2 is wrong: must look like amqp://user:password@host:5672/vhost, several hosts with commas between them',
    ]);
  });
});
