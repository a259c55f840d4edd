import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

/**
 * Makes the Erlang of unpacked packages run wherever they lie (a checkout may be moved, or its cache copied) and on their own libraries,
 * which may be newer than the system's: a script in the place of each program starts it by the packages' own loader. The library path is
 * no variable, which the system's programs that Erlang starts would inherit, and could not bear.
 * @param root where the packages were unpacked
 */
export function makeRelocatable(root: string): void {
  const erlang = join(root, 'usr/lib/erlang');
  const script = join(erlang, 'bin/erl');
  writeFileSync(script, relocateErlang(readFileSync(script, 'utf8')));
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const loader = files.find((file) => basename(file).startsWith('ld-linux-'));
  if (loader === undefined) throw new Error('the packages hold no loader of programs');
  const libraries = ['lib', 'usr/lib'].map((parent) => join(root, parent, basename(dirname(loader))));
  for (const program of files.filter((file) => file.startsWith(erlang) && isProgram(file))) {
    const real = `${program}.real`;
    renameSync(program, real);
    const inRoot = (path: string): string => `"$root/${relative(root, path)}"`;
    const script = `#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/${relative(dirname(program), root)}
exec ${inRoot(loader)} --library-path ${libraries.map(inRoot).join(':')} --argv0 "$0" ${inRoot(real)} "$@"
`;
    writeFileSync(program, script, { mode: 0o755 });
  }
}

/** Points Debian's Erlang start script at where it lies itself. */
function relocateErlang(script: string): string {
  return script.replaceAll(/^(\s*ROOTDIR=)\/.*$/gm, '$1$(dirname "$(dirname "$(readlink -f "$0")")")');
}

function isProgram(file: string): boolean {
  return (statSync(file).mode & 0o111) !== 0 && readFileSync(file).subarray(1, 4).toString() === 'ELF';
}
