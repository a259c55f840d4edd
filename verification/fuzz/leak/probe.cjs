/**
 * Loaded into a service by `node --require` for a leak run: on each connection to the Unix socket of LEAK_PROBE_FOLDER it collects garbage
 * and writes what the process holds. Nothing of it is in the services themselves.
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
    // What the first collection finalised, the second frees.
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
