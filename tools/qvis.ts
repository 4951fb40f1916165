// What qvis makes of a qlog, by its own code: its file loader, its event parser, and the reading of its
// congestion graph, without a browser. In an empty folder, with Node 20:
//
//   git clone https://github.com/quiclog/qvis
//   npm install esbuild vue@2 d3@5 oboe@2
//   mkdir -p stub/draft-01 stub/draft-16 && touch stub/draft-{01,16}/QLog.js
//   npx esbuild qvis.ts --bundle --platform=node --format=esm --outfile=qvis.mjs \
//     --alias:@=./qvis/visualizations/src --alias:@quictools/qlog-schema=./stub \
//     --banner:js='import { createRequire } from "node:module"; const require = createRequire(import.meta.url); globalThis.window = {};'
//   node qvis.mjs FLOW.sender.sqlog
//
// The stubs stand for the names of older drafts, whose package need not be there for 0.3.
import CongestionGraphD3Renderer from '@/components/congestiongraph/renderer/CongestionGraphD3Renderer';
import { MainGraphState } from '@/components/congestiongraph/renderer/MainGraphState';
import { RecoveryGraphState } from '@/components/congestiongraph/renderer/RecoveryGraphState';
import FileLoader from '@/components/filemanager/data/FileLoader';
import { QlogLoader } from '@/data/QlogLoader';
import { readFileSync } from 'node:fs';

const say = console.log;
const complaints = new Set<string>();
console.log = () => {};
console.error = (first: unknown) => { complaints.add(String(first)); };

for (const path of process.argv.slice(2)) {
  complaints.clear();
  const { qlogJSON } = await FileLoader.Load(readFileSync(path, 'utf8'), path);
  for (const connection of QlogLoader.fromJSON(qlogJSON)!.getConnections()) {
    const events: Record<string, number> = {};
    for (const [category, names] of connection.getLookupTable()) {
      for (const [name, every] of names) events[`${category}:${name}`] = every.length;
    }
    const graph: any = new (CongestionGraphD3Renderer as any)('', '');
    Object.assign(graph, { config: { connection }, mainGraphState: new MainGraphState(), recoveryGraphState: new RecoveryGraphState() });
    graph.parseQlog();
    const sent = connection.lookup('transport', 'packet_sent').map((one: any) => one.qvis.congestion);
    const lines = Object.entries<any[]>(graph.mainGraphState.metricUpdateLines);
    say(JSON.stringify({
      end: connection.getVantagePointPerspective(),
      events,
      acknowledged: sent.filter((one: any) => one.correspondingAck).length,
      lost: sent.filter((one: any) => one.correspondingLoss).length,
      highest: Object.fromEntries(lines.map(([name, points]) => [name, points.reduce((high, [, y]) => Math.max(high, y), 0)])),
      complaints: [...complaints],
    }, null, 1));
  }
}
