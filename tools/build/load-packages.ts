/**
 * Bundled into every program that has its packages in a bundle: loads that bundle, and makes stack traces show lines of TypeScript. Both
 * are what Node can do, but in less time.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { getCompileCacheDir, SourceMap, type SourceMapPayload } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { constants, Script } from 'node:vm';

type Loaded = (
  exports: unknown,
  require: unknown,
  module: { exports: unknown },
  file: string,
  folder: string,
) => void;

/** Long enough for a start, and short enough that V8 still has the code of what only a start runs. */
const SAVE_AFTER_MS = 10_000;

/**
 * Runs `packages.js` beside this program, with the compiled code that an earlier run left where Node keeps its own (`NODE_COMPILE_CACHE`).
 * Node saves code before it runs, and so without most functions; this saves it after the start, with all functions that ran.
 */
function loadPackages(): unknown {
  const filename = join(__dirname, 'packages.js');
  const source = readFileSync(filename, 'utf8');
  const cache = cacheFile(source);
  const cachedData = cache !== null && existsSync(cache) ? readFileSync(cache) : undefined;
  const script = new Script(source, {
    ...{ filename, cachedData },
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  if (cache !== null && script.cachedDataRejected !== false) saveLater(script, cache);
  const module = { exports: {} };
  (script.runInThisContext() as Loaded)(module.exports, require, module, filename, dirname(filename));
  return module.exports;
}

/** Each program runs other functions. @param source begins with a line that says what it was made from */
function cacheFile(source: string): string | null {
  const folder = getCompileCacheDir();
  const digest = /^\/\/ Made from (\w+)/.exec(source)?.[1];
  if (folder === undefined || digest === undefined) return null;
  return join(folder, `${basename(__filename)}-${digest}`);
}

function saveLater(script: Script, file: string): void {
  const save = (): void => {
    clearTimeout(timer);
    process.off('exit', save);
    const unfinished = `${file}.${process.pid}`;
    try {
      writeFileSync(unfinished, script.createCachedData());
      renameSync(unfinished, file);
    } catch (error) {
      process.emitWarning(`The next start will take longer: ${String(error)}`);
    }
  };
  const timer = setTimeout(save, SAVE_AFTER_MS).unref();
  process.on('exit', save);
}

/** Node's `--enable-source-maps` reads the map at every start. Here the first stack trace does. */
function mapStackTraces(): void {
  let map: SourceMap | undefined;
  const mapFile = `${__filename}.map`;
  const lineOf = (site: NodeJS.CallSite): string => {
    const text = (site as { toString(): string }).toString();
    const [line, column] = [site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0];
    if (site.getFileName() !== __filename || !existsSync(mapFile)) return text;
    map ??= new SourceMap(JSON.parse(readFileSync(mapFile, 'utf8')) as SourceMapPayload);
    const origin = map.findOrigin(line, column);
    if (!('fileName' in origin)) return text;
    const place = `${resolve(__dirname, origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`;
    return text.replace(`${__filename}:${line}:${column}`, place);
  };
  Error.prepareStackTrace = (error, sites) =>
    [String(error), ...sites.map((site) => `    at ${lineOf(site)}`)].join('\n');
}

mapStackTraces();
export const packages = loadPackages();
