import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { relocateErlang, selectPackages } from './rabbitmq-installation.ts';

describe('selectPackages', () => {
  it('keeps the server, Erlang and the libraries a bare system lacks, once each', () => {
    const apt = [
      'rabbitmq-server',
      '  Depends: erlang-base',
      'erlang-base',
      'erlang-base',
      'libssl3t64',
      'libc6',
      'logrotate',
    ];
    expect(selectPackages(apt.join('\n'))).toEqual(['rabbitmq-server', 'erlang-base', 'libssl3t64']);
  });

  it('leaves out virtual packages, documentation and the other Erlang flavour', () => {
    expect(
      selectPackages(['<esl-erlang>', 'erlang-doc', 'erlang-base-hipe', 'erlang-os-mon'].join('\n')),
    ).toEqual(['erlang-os-mon']);
  });
});

describe('relocateErlang', () => {
  const script = 'x\n    ROOTDIR=/usr/lib/erlang\nROOTDIR="$ERL_ROOTDIR"\nROOTDIR=/usr/lib/erlang\n';

  it('points every ROOTDIR line at the new place, whatever characters it holds', () => {
    const places = [`/a b/$&"\\`, `/it's`, '/plain'];
    const moved = places.reduce((text, place) => {
      const next = relocateErlang(text, place);
      const shown = execFileSync('sh', ['-c', `${next.replace('x\n', '')} printf %s "$ROOTDIR"`], {
        encoding: 'utf8',
      });
      expect(shown).toBe(place);
      return next;
    }, script);
    expect(moved).toBe(`x\n    ROOTDIR='/plain'\nROOTDIR="$ERL_ROOTDIR"\nROOTDIR='/plain'\n`);
  });
});

describe('unpackRabbitmq', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rabbitmq-installation-'));
  const programs = join(folder, 'bin');
  const cache = join(folder, 'cache');

  beforeAll(() => {
    mkdirSync(programs);
    const scripts = {
      'apt-cache': 'echo rabbitmq-server',
      'apt-get': 'touch rabbitmq-server.deb erlang-base.deb',
      dpkg: `mkdir -p "$3/usr/lib/erlang/bin" "$3/usr/lib/erlang/erts-1/bin" "$3/usr/lib/rabbitmq/lib/rabbitmq_server-1/sbin"
        for script in erl start; do echo ROOTDIR=/usr/lib/erlang > "$3/usr/lib/erlang/bin/$script"; done
        touch "$3/usr/lib/erlang/erts-1/bin/epmd"`,
    };
    for (const [name, script] of Object.entries(scripts))
      writeFileSync(join(programs, name), `#!/bin/sh\nset -e\n${script}\n`, { mode: 0o755 });
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it('gives several programs that begin at the same moment one complete copy, and leaves nothing else', async () => {
    const module = pathToFileURL(join(__dirname, 'rabbitmq-installation.ts')).href;
    const program = `import('${module}').then(({ unpackRabbitmq }) => unpackRabbitmq('${cache}')).then(({ epmd }) => console.log(epmd))`;
    const env = { ...process.env, PATH: programs + delimiter + process.env['PATH'] };
    const unpack = () => promisify(execFile)(process.execPath, ['-e', program], { env });
    const results = await Promise.all([unpack(), unpack(), unpack(), unpack()]);
    const epmd = join(cache, 'rabbitmq/usr/lib/erlang/erts-1/bin/epmd');
    expect(results.map(({ stdout }) => stdout.trim())).toEqual([epmd, epmd, epmd, epmd]);
    expect(readdirSync(cache)).toEqual(['rabbitmq']);
  });
});
