const { appendFileSync } = require('node:fs');
const http = require('node:http');
const { join } = require('node:path');

/**
 * Records every HTTP request and response of this process's servers, so that secret-scan.ts can search the
 * logs for their secrets after the run. Loaded before anything else: by Jest in its workers, and by
 * `--require` in processes that tests start. Does nothing unless TEST_RECORDING_FOLDER names a folder. Plain
 * CommonJS, because no compiler is set up at that point.
 */
const folder = process.env.TEST_RECORDING_FOLDER;
const ORIGINAL = Symbol.for('platform.testing.unrecorded-emit');

if (folder) {
  const prototype = http.Server.prototype;
  // A worker loads this file again for each test file. The new version replaces the previous one and does not
  // wrap it.
  const emit = (prototype[ORIGINAL] ??= prototype.emit);
  prototype.emit = function (event, ...rest) {
    if (event === 'request') record(...rest);
    return emit.call(this, event, ...rest);
  };
}

function record(request, response) {
  const requestBody = chunksOf(request, ['push']);
  const responseBody = chunksOf(response, ['write', 'end']);
  // Node does not store headers that are passed to writeHead.
  const headers = {};
  const writeHead = response.writeHead;
  response.writeHead = function (...args) {
    const given = args.at(-1);
    if (typeof given === 'object' && given !== null && !Array.isArray(given))
      for (const [name, value] of Object.entries(given)) headers[name.toLowerCase()] = value;
    return writeHead.apply(this, args);
  };
  response.once('close', () => {
    const exchange = {
      request: { url: request.url, headers: request.headers, body: requestBody() },
      response: { url: request.url, headers: { ...response.getHeaders(), ...headers }, body: responseBody() },
    };
    appendFileSync(join(folder, `${process.pid}.traffic`), `${JSON.stringify(exchange)}\n`);
  });
}

/** Wraps methods that take chunks. Returns a function that returns the text so far. */
function chunksOf(target, methods) {
  const chunks = [];
  for (const name of methods) {
    const original = target[name];
    target[name] = function (chunk, ...rest) {
      if (typeof chunk === 'string' || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
      return original.call(this, chunk, ...rest);
    };
  }
  return () => Buffer.concat(chunks).toString();
}
