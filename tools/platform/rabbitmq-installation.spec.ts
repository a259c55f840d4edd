import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { isWanted } from './rabbitmq-installation.ts';

describe('isWanted', () => {
  it('keeps the server, Erlang and the libraries they load', () => {
    const names = [
      'rabbitmq-server',
      '  Depends: erlang-base',
      'erlang-base',
      'libssl3t64',
      'libc6',
      'logrotate',
    ];
    expect(names.filter(isWanted)).toEqual(['rabbitmq-server', 'erlang-base', 'libssl3t64', 'libc6']);
  });

  it('leaves out virtual packages, documentation and the other Erlang flavour', () => {
    const names = ['<esl-erlang>', 'erlang-doc', 'erlang-base-hipe', 'erlang-os-mon'];
    expect(names.filter(isWanted)).toEqual(['erlang-os-mon']);
  });
});

describe('provideRabbitmq', () => {
  let folder: string;
  let cache: string;

  /**
   * Creates fakes of Debian's programs. Their mirror has these releases, and the system's own sources have
   * RabbitMQ 3.10.8.
   */
  const fakeDebian = (releases: readonly string[]): void => {
    const scripts = {
      'apt-cache': 'echo rabbitmq-server',
      'apt-get': `case "$*" in
        *indextargets*) . /etc/os-release; echo "$VERSION_CODENAME main http://mirror/"; exit;;
      esac
      for argument; do case $argument in Dir::Etc::SourceList=*) list=\${argument#*=};; esac; done
      release=system
      if [ "$list" ]; then read -r _ _ _ release _ < "$list"; fi
      case " ${releases.join(' ')} system " in *" $release "*) ;; *) echo "E: no $release here" >&2; exit 100;; esac
      case "$*" in *download*) echo $release > rabbitmq-server.deb;; esac`,
      dpkg: `case $(cat "$2") in trixie) version=4.0.5;; *) version=3.10.8;; esac
        mkdir -p "$3/usr/lib/erlang/bin" "$3/usr/lib/erlang/erts-1/bin" "$3/usr/lib/x" "$3/usr/lib/rabbitmq/lib/rabbitmq_server-$version/sbin"
        echo ROOTDIR=/usr/lib/erlang > "$3/usr/lib/erlang/bin/erl"
        touch "$3/usr/lib/erlang/erts-1/bin/epmd" "$3/usr/lib/x/ld-linux-x.so"`,
    };
    const programs = join(folder, 'bin');
    mkdirSync(programs);
    for (const [name, script] of Object.entries(scripts))
      writeFileSync(join(programs, name), `#!/bin/sh\nset -e\n${script}\n`, { mode: 0o755 });
  };
  const provide = async (major = ''): Promise<{ version: string; warning: string }> => {
    const module = pathToFileURL(join(__dirname, 'rabbitmq-installation.ts')).href;
    const program = `import('${module}').then(({ provideRabbitmq }) => provideRabbitmq('${cache}', null)).then(({ version }) => console.log(version))`;
    const PATH = `${join(folder, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`;
    const env = { ...process.env, PATH, PLATFORM_RABBITMQ: major };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program], { env });
    return { version: stdout.trim(), warning: stderr.trim() };
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rabbitmq-installation-'));
    chmodSync(folder, 0o755);
    cache = join(folder, 'cache');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('unpacks one complete copy for programs that start at the same moment, and leaves nothing else', async () => {
    fakeDebian(['trixie']);
    const results = await Promise.all([provide(), provide(), provide(), provide()]);
    expect(results).toEqual(Array(4).fill({ version: '4.0.5', warning: '' }));
    expect(readdirSync(cache)).toEqual(['rabbitmq-trixie']);
  });

  it('falls back to the version of the system if there is no 4, and warns in one line', async () => {
    fakeDebian([]);
    expect(await provide()).toEqual({
      version: '3.10.8',
      warning:
        "RabbitMQ 4 is not available (no trixie here): using Debian's packages of RabbitMQ 3.10.8, unpacked for this checkout",
    });
  });

  it('uses the required version or fails', async () => {
    fakeDebian(['bookworm']);
    expect(await provide('3')).toEqual({ version: '3.10.8', warning: '' });
    await expect(provide('4')).rejects.toThrow(/no trixie here/);
    await expect(provide('5')).rejects.toThrow(/use 3 or 4/);
  });
});
