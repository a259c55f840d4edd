import { hostAddress, parseAddress } from './address';

describe('parseAddress', () => {
  it.each([
    ['rabbitmq://broker/orders', 'endpoint', 'orders'],
    ['rabbitmq://broker:5673/prod/bus-host-1?temporary=true', 'endpoint', 'bus-host-1'],
    [
      'rabbitmq://broker/my%2Fvhost/Platform.Contracts:IThing?durable=true&autodelete=true',
      'endpoint',
      'Platform.Contracts:IThing',
    ],
    ['amqps://user:pw@broker/vhost/replies', 'endpoint', 'replies'],
    ['queue:replies', 'queue', 'replies'],
    ['queue:replies?durable=true', 'queue', 'replies'],
    ['exchange:Platform.Contracts:IThing', 'exchange', 'Platform.Contracts:IThing'],
    ['topic:Platform.Contracts:IThing', 'exchange', 'Platform.Contracts:IThing'],
  ])('reads %s', (text, kind, name) => {
    expect(parseAddress(text)).toEqual({ kind, name });
  });

  it.each([
    '',
    'replies',
    'http://broker/replies',
    'rabbitmq://broker',
    'rabbitmq://broker/',
    'queue:',
    'loopback://localhost/x',
    // Names longer than AMQP allows.
    `queue:${'n'.repeat(256)}`,
    `exchange:${'ü'.repeat(128)}`,
    `rabbitmq://broker/${'n'.repeat(256)}`,
  ])('finds no address in %p', (text) => {
    expect(parseAddress(text)).toBeNull();
  });
});

describe('hostAddress', () => {
  it.each([
    ['amqp://guest:secret@broker', 'rabbitmq://broker'],
    ['amqp://guest:secret@broker:5672/', 'rabbitmq://broker'],
    ['amqp://guest:secret@broker:5673/%2F', 'rabbitmq://broker:5673'],
    ['amqps://guest:secret@broker:5671/prod?heartbeat=5', 'rabbitmq://broker:5671/prod'],
  ])('omits the credentials of %s', (url, expected) => {
    expect(hostAddress(url)).toBe(expected);
  });

  it.each(['amqp//guest:secret@broker', 'http://guest:secret@broker'])(
    'refuses %s without repeating it',
    (url) => {
      expect(() => hostAddress(url)).toThrow(/^not an AMQP URL \(value withheld\)$/);
    },
  );
});
