import { administer } from './admin/administration';

const write =
  (stream: NodeJS.WriteStream) =>
  (text: string): void => {
    stream.write(`${text}\n`);
  };

void administer(process.argv.slice(2), { out: write(process.stdout), err: write(process.stderr) }).then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
);
