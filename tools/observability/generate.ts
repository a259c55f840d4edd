/** Writes the generated files in observability/. Usage: node tools/observability/generate.ts */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDER, generatedFiles } from './generated.ts';

for (const [path, text] of generatedFiles()) writeFileSync(join(FOLDER, path), text);
