import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeRelocatable } from './rabbitmq-installation.ts';

describe('makeRelocatable', () => {
  const folder = mkdtempSync(join(tmpdir(), 'unpacked-erlang-'));
  const [unpacked, moved] = [join(folder, 'unpacked'), join(folder, `it's a "place"`)];
  const triplet = readdirSync('/usr/lib').find((name) => name.endsWith('-linux-gnu')) ?? '';
  const libraries = join('/usr/lib', triplet);
  const loader = readdirSync(libraries).find((name) => name.startsWith('ld-linux-')) ?? '';
  const erlang = 'usr/lib/erlang';

  beforeAll(() => {
    for (const path of [`${erlang}/bin`, `${erlang}/erts-1/bin`, `usr/lib/${triplet}`])
      mkdirSync(join(unpacked, path), { recursive: true });
    const script = '#!/bin/sh\n  ROOTDIR=/usr/lib/erlang\nprintf %s "$ROOTDIR"\n';
    writeFileSync(join(unpacked, erlang, 'bin/erl'), script, { mode: 0o755 });
    copyFileSync('/bin/cat', join(unpacked, erlang, 'erts-1/bin/beam.smp'));
    for (const library of [loader, 'libc.so.6'])
      copyFileSync(join(libraries, library), join(unpacked, 'usr/lib', triplet, library));
    makeRelocatable(unpacked);
    renameSync(unpacked, moved);
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it('lets the start script find Erlang where it was moved', () => {
    const shown = execFileSync(join(moved, erlang, 'bin/erl'), { encoding: 'utf8' });
    expect(shown).toBe(realpathSync(join(moved, erlang)));
  });

  it('runs programs on the libraries beside them', () => {
    const program = join(moved, erlang, 'erts-1/bin/beam.smp');
    const mapped = execFileSync(program, ['/proc/self/maps'], { encoding: 'utf8' });
    const files = new Set(mapped.match(/\/.*\.so.*$/gm));
    expect([...files].sort()).toEqual(
      [loader, 'libc.so.6'].map((name) => join(moved, 'usr/lib', triplet, name)).sort(),
    );
  });
});
