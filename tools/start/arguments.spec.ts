import { ArgumentsError } from '#platform/command-line.ts';
import { choosePorts, DEFAULT_PORTS } from '#platform/ports.ts';
import { describeTakenPorts, parseStartArguments, portsToOpen } from './arguments.ts';

describe('parseStartArguments', () => {
  it('uses the documented defaults without flags', () => {
    expect(parseStartArguments([])).toEqual({
      ports: DEFAULT_PORTS,
      reset: false,
      detach: false,
      verbose: false,
      infrastructureOnly: false,
    });
  });

  it('moves every port by the offset except those chosen by name', () => {
    const { ports } = parseStartArguments(['--port-offset', '1000', '--port', 'auth=8080']);
    expect([ports.auth, ports.settings, ports.postgresql]).toEqual([8080, 4002, 55_329]);
  });

  it.each([
    ['an unknown flag', ['--rest']],
    ['a word', ['now']],
    ['an unknown port name', ['--port', 'web=80']],
    ['a port without number', ['--port', 'auth']],
    ['a port out of range', ['--port', 'auth=70000']],
    ['one port for two', ['--port', 'auth=3002']],
    ['an offset that is no number', ['--port-offset', 'ten']],
  ])('refuses %s with a message for the user', (_what, args) => {
    expect(() => parseStartArguments(args)).toThrow(ArgumentsError);
  });
});

describe('ports', () => {
  it('opens no port for a server that the user named', () => {
    expect(
      portsToOpen({ database: true, broker: true, infrastructureOnly: false }).filter((name) =>
        /postgres|rabbit/.test(name),
      ),
    ).toEqual([]);
    expect(portsToOpen({ database: false, broker: false, infrastructureOnly: false })).toHaveLength(
      Object.keys(DEFAULT_PORTS).length,
    );
  });

  it('names port, owner and flag if a port is in use', () => {
    expect(describeTakenPorts(['auth'], choosePorts(10, {}))).toMatch(/port 3011 for auth: .*--port auth=/);
  });
});
