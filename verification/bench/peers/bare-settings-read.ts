/** The minimal server that reads a setting's value: `node:http` and `pg`, without any checks. */
import { createServer } from 'node:http';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 20 });
const PATH = /^\/platform\/v1\/subsystems\/([^/]+)\/settings\/([^/]+)\/value$/;
const TEXT = 'SELECT value_text FROM settings.setting WHERE subsystem_key = $1 AND setting_key = $2';

createServer((request, response) => {
  const path = PATH.exec(request.url ?? '');
  if (path === null) {
    response.writeHead(200).end();
    return;
  }
  const values = [path[1]!.toLowerCase(), path[2]!.toLowerCase()];
  pool.query<{ value_text: string }>({ name: 'read', text: TEXT, values }).then(
    ({ rows }) => response.writeHead(200, { 'content-type': 'application/json' }).end(rows[0]!.value_text),
    (error: unknown) => {
      console.error(error);
      response.writeHead(500).end();
    },
  );
}).listen(Number(process.env['PORT']), '127.0.0.1');
