/**
 * What runs first in every program that has its packages in a bundle: loads these, then the program's own
 * code. Both come with the compiled code that an earlier run saved, and stack traces show lines of
 * TypeScript. Node can do all of it, but takes longer.
 */
import { hash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { getCompileCacheDir, SourceMap, type SourceMapPayload } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { constants, Script } from 'node:vm';
import { NODE_MAJOR } from './node-version.ts';

/** What Node makes of a CommonJS file, and the packages for the program's own code. */
type Loaded = (
  ...scope: [
    exports: unknown,
    require: NodeJS.Require,
    module: { exports: unknown },
    file: string,
    folder: string,
    packages?: unknown,
  ]
) => void;

/** Long enough for a start, and short enough that V8 still has the code of what only a start runs. */
const SAVE_AFTER_MS = 10_000;
const PACKAGES = join(__dirname, 'packages.js');
const OWN_CODE = join(__dirname, 'code', basename(__filename));

/**
 * The function that a file consists of, with the compiled code that an earlier run left where Node keeps its
 * own (`NODE_COMPILE_CACHE`). Node saves code before it runs, and so without most functions; this saves it
 * after the start, with all functions that ran.
 */
function load(filename: string): Loaded {
  const source = readFileSync(filename, 'utf8');
  const cache = new CompiledCode(filename, source);
  const script = new Script(source, {
    filename,
    cachedData: cache.read(),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  if (script.cachedDataRejected !== false) cache.saveLater(script);
  return script.runInThisContext() as Loaded;
}

/** The compiled code of a file in this program: each program runs other functions. */
class CompiledCode {
  readonly #file: string | null;
  /** Of the source: V8 compares nothing but its length. */
  readonly #digest: Buffer;

  constructor(filename: string, source: string) {
    const folder = getCompileCacheDir();
    const name = `${basename(__filename)}-${hash('sha256', `${__filename}\n${filename}`)}`;
    this.#file = folder === undefined ? null : join(folder, name);
    // A bundle of packages is large, and says in its first line what it was made from.
    this.#digest = hash('sha256', /^\/\/ Made from .*/.exec(source)?.[0] ?? source, 'buffer');
  }

  read(): Buffer | undefined {
    if (this.#file === null || !existsSync(this.#file)) return undefined;
    const saved = readFileSync(this.#file);
    const { length } = this.#digest;
    return this.#digest.equals(saved.subarray(0, length)) ? saved.subarray(length) : undefined;
  }

  saveLater(script: Script): void {
    const file = this.#file;
    if (file === null) return;
    const save = (): void => {
      clearTimeout(timer);
      process.off('exit', save);
      const unfinished = `${file}.${process.pid}`;
      try {
        writeFileSync(unfinished, Buffer.concat([this.#digest, script.createCachedData()]));
        renameSync(unfinished, file);
      } catch (error) {
        process.emitWarning(`The next start will take longer: ${String(error)}`);
      }
    };
    const timer = setTimeout(save, SAVE_AFTER_MS).unref();
    process.on('exit', save);
  }
}

/** Node's `--enable-source-maps` reads the map at every start. Here the first stack trace does. */
function mapStackTraces(): void {
  let map: SourceMap | undefined;
  const mapFile = `${OWN_CODE}.map`;
  const lineOf = (site: NodeJS.CallSite): string => {
    const text = (site as { toString(): string }).toString();
    const [line, column] = [site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0];
    if (site.getFileName() !== OWN_CODE || !existsSync(mapFile)) return text;
    map ??= new SourceMap(JSON.parse(readFileSync(mapFile, 'utf8')) as SourceMapPayload);
    const origin = map.findOrigin(line, column);
    if (!('fileName' in origin)) return text;
    const place = `${resolve(dirname(OWN_CODE), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`;
    return text.replace(`${OWN_CODE}:${line}:${column}`, place);
  };
  Error.prepareStackTrace = (error, sites) =>
    [String(error), ...sites.map((site) => `    at ${lineOf(site)}`)].join('\n');
}

/** Ends the program under a Node that is too old for it, before it fails at something that this Node does
 *  not have. */
function assertNodeVersion(): void {
  const major = Number.parseInt(process.versions.node, 10);
  if (major >= NODE_MAJOR) return;
  const needs = `${basename(__filename)} needs Node ${String(NODE_MAJOR)} or later, and this is ${process.version}`;
  process.stderr.write(`${needs}: run it in the service's image, or by an npm script of the workspace.\n`);
  process.exit(1);
}

assertNodeVersion();
mapStackTraces();
const packages = { exports: {} };
load(PACKAGES)(packages.exports, require, packages, PACKAGES, __dirname);
load(OWN_CODE)(exports, require, module, __filename, __dirname, packages.exports);
