/**
 * Start script of every program with bundled packages: loads the packages, then the program's own code. Both
 * use the compiled code that an earlier run saved, and stack traces show lines of TypeScript. Node has
 * options for both, but starts more slowly with them.
 */
import { hash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { getCompileCacheDir, SourceMap, type SourceMapPayload } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { constants, Script } from 'node:vm';
import { NODE_MAJOR } from './node-version.ts';

/** The function that Node makes of a CommonJS file; the program's own code takes `packages` in addition. */
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

/**
 * Delay in ms between loading the code and saving it compiled. By then the start has ended, and V8 has not
 * yet discarded the code that runs only at the start.
 */
const SAVE_AFTER_MS = 10_000;
const PACKAGES = join(__dirname, 'packages.js');
const OWN_CODE = join(__dirname, 'code', basename(__filename));

/**
 * Compiles a file that consists of one function, from the code that an earlier run saved, if there is any.
 * The saved code lies in Node's own cache folder (`NODE_COMPILE_CACHE`). Node itself saves code before it
 * runs, so without most functions. This program saves it after the start, with all functions that ran.
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

/**
 * Saved compiled code of one file, separate for each program, because each program runs different functions
 * of the file.
 */
class CompiledCode {
  readonly #file: string | null;
  /** Digest of the source, because V8 recognises a changed source only by its length. */
  readonly #digest: Buffer;

  constructor(filename: string, source: string) {
    const folder = getCompileCacheDir();
    const name = `${basename(__filename)}-${hash('sha256', `${__filename}\n${filename}`)}`;
    this.#file = folder === undefined ? null : join(folder, name);
    // A bundle of packages is large; its first line already is a digest of its inputs.
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

/**
 * Makes stack traces show TypeScript. Reads the source map at the first stack trace, where Node's
 * `--enable-source-maps` would read it at every start.
 */
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

/** Exits with 1 under a Node that is too old, before the program fails at a feature that this Node lacks. */
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
