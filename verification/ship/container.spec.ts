import { runFlags } from './engine.ts';

describe('runFlags', () => {
  it('adds no flags by default', () => {
    const spec = {
      name: 'x',
      image: 'y',
      command: null,
      environment: { A: 'secret' },
      network: { ip: '10.0.0.2' },
    };
    expect(runFlags(spec)).toEqual([]);
  });

  it('confines a container like its pod', () => {
    const flags = runFlags({
      name: 'x',
      image: 'y',
      command: null,
      environment: {},
      network: { container: 'z' },
      isReadOnly: true,
      droppedCapabilities: ['ALL'],
      mayGainPrivileges: false,
      user: '1000:1000',
      memoryBytes: 512,
      cpus: '2',
      tmpfs: ['/state:mode=1777'],
    });
    expect(flags.join(' ')).toBe(
      '--read-only --cap-drop ALL --security-opt no-new-privileges --user 1000:1000 --memory 512b --cpus 2 --tmpfs /state:mode=1777',
    );
  });
});
