/**
 * The memory probe of a leak run, loaded into a service with `node --require`. On each connection to its Unix
 * socket in LEAK_PROBE_FOLDER it collects garbage and writes the memory and resource counts of the process.
 * The services themselves contain none of it.
 */
const { createServer } = require('node:net');
const { join } = require('node:path');

const folder = process.env.LEAK_PROBE_FOLDER;
delete process.env.LEAK_PROBE_FOLDER;

function countResources() {
  const counts = {};
  for (const type of process.getActiveResourcesInfo()) counts[type] = (counts[type] ?? 0) + 1;
  return counts;
}

if (folder !== undefined) {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    global.gc();
    // The second collection frees objects that the first one finalised.
    setImmediate(() => {
      global.gc();
      const { rss, heapUsed, external } = process.memoryUsage();
      socket.end(JSON.stringify({ rss, heapUsed, external, resources: countResources() }));
    });
  });
  server.on('error', () => undefined);
  server.listen(join(folder, `${process.pid}.sock`));
  server.unref();
}
