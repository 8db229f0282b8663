// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/heatmap.hpp>

namespace heed::detail {

HEED_INLINE std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char byte : safe_text(text)) {
    if (byte == '"' || byte == '\\') result += '\\';
    if (byte == '<') {
      result += "\\u003c";
    } else {
      result += byte;
    }
  }
  return result + "\"";
}

/// Labels as a JSON list, or numbers if there are none.
HEED_INLINE std::string json_labels(const std::vector<std::string>& labels, Index count) {
  std::string list = "[";
  for (Index i = 0; i < count; ++i) {
    if (i > 0) list += ",";
    list += labels.empty() ? json_string(std::to_string(i))
                           : json_string(labels[static_cast<std::size_t>(i)]);
  }
  return list + "]";
}

/// The most weights that a page holds as they are; those of longer texts take a byte each.
inline constexpr Index most_exact_weights = 500000;

/// The square root of a weight in 254 steps: small weights keep their size, and 0, which is masked,
/// stays alone. 255 is NaN.
HEED_INLINE std::uint8_t weight_byte(float weight) {
  if (!(weight == weight)) return 255;
  if (weight <= 0) return 0;
  const double steps = 254 * std::sqrt(static_cast<double>(weight)) + 0.5;
  return steps < 1     ? std::uint8_t{1}
         : steps > 254 ? std::uint8_t{254}
                       : static_cast<std::uint8_t>(steps);
}

/// Numbers as base64: as little-endian floats, or as a byte each, which only weights can be.
HEED_INLINE std::string base64_of(std::span<const float> numbers, bool exact) {
  std::vector<std::uint8_t> bytes;
  for (const float number : numbers) {
    if (!exact) {
      bytes.push_back(weight_byte(number));
      continue;
    }
    const auto bits = std::bit_cast<std::uint32_t>(number);
    for (const int shift : {0, 8, 16, 24})
      bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  return base64_of(std::span<const std::uint8_t>(bytes));
}

inline constexpr std::string_view html_style = R"(
body{font:14px system-ui,sans-serif;color:#222;margin:20px}
h1{font-size:18px;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}
p{color:#666}
table{border-spacing:6px}th{font-weight:400;color:#666;text-align:right;white-space:nowrap}
thead th{text-align:center}
canvas{display:block;image-rendering:pixelated}
td canvas{width:88px;height:88px;cursor:zoom-in;border:1px solid #ccc}
td canvas:focus,button:focus{outline:3px solid #0072b2}
button{font:inherit;margin:0 6px 12px 0;padding:2px 10px}
button[aria-pressed=true]{background:#0072b2;color:#fff}
#large{position:fixed;inset:0;background:#fff;overflow:auto;padding:20px}
#large[hidden]{display:none}
)";
inline constexpr std::string_view html_tip_style = R"(
#tip{font:14px system-ui,sans-serif;position:fixed;background:#222;color:#fff;padding:3px 8px;
border-radius:4px;pointer-events:none;white-space:pre;z-index:2}
)";

/// Reads weights when they are looked at, and paints a head as one image.
inline constexpr std::string_view html_weights_script = R"(
const area=queries*keys,read={},masked=[226,221,210];
const weightOfByte=Float32Array.from({length:256},(none,b)=>b===255?NaN:(b/254)**2);
let mask=0;
function weightsOf(layer,head){
  const at=(mask*layers+layer)*heads+head;
  if(!read[at]){
    const text=atob(data[at]),bytes=new Uint8Array(text.length);
    for(let i=0;i<bytes.length;++i)bytes[i]=text.charCodeAt(i);
    read[at]=exact?new Float32Array(bytes.buffer):new Float32Array(bytes.length);
    for(let i=0;!exact&&i<bytes.length;++i)read[at][i]=weightOfByte[bytes[i]];
  }
  return read[at];
}
const hidden=new Set();
/// Weights without the keys left out: the others of a query add up to 1 again.
function shownOf(layer,head){
  const all=weightsOf(layer,head);
  if(!hidden.size)return all;
  const some=Float32Array.from(all);
  for(let q=0;q<queries;++q){
    let left=0;
    for(let k=0;k<keys;++k)if(hidden.has(k))some[q*keys+k]=0;else left+=some[q*keys+k];
    if(left>0)for(let k=0;k<keys;++k)some[q*keys+k]/=left;
  }
  return some;
}
/// By the square root of a weight, so that small ones differ.
const colorOf=w=>w!==w?[128,128,128]:w===0?masked:
  colors[Math.round(255*Math.sqrt(Math.max(0,Math.min(1,w))))];
const css=w=>'rgb('+colorOf(w)+')';
const dark=([r,g,b])=>.3*r+.59*g+.11*b<130;
/// The largest weight of each `block` by `block` cells, as an image.
function imageOf(weights,block){
  const wide=Math.ceil(keys/block),high=Math.ceil(queries/block),most=new Float32Array(wide*high);
  for(let q=0,from=0;q<queries;++q){
    const row=Math.floor(q/block)*wide;
    for(let k=0;k<keys;++k,++from){
      const w=weights[from],at=row+(block===1?k:Math.floor(k/block));
      if(!(w<=most[at]))most[at]=w;
    }
  }
  const canvas=document.createElement('canvas');
  canvas.width=wide;canvas.height=high;
  if(!wide||!high)return canvas;
  const image=new ImageData(wide,high);
  const pixels=image.data;
  for(let i=0;i<most.length;++i){
    const [r,g,b]=colorOf(most[i]),at=4*i;
    pixels[at]=r;pixels[at+1]=g;pixels[at+2]=b;pixels[at+3]=255;
  }
  canvas.getContext('2d').putImageData(image,0,0);
  return canvas;
}
const say=w=>exact&&!hidden.size?String(Number(w.toPrecision(4))):
  w===0?'0':(exact?'':'\u2248 ')+Number(w.toPrecision(exact?4:2));
)";

/// One head, large: as a heatmap, or as lines from query to key.
inline constexpr std::string_view html_large_script = R"(
const byId=id=>document.getElementById(id),tip=byId('tip'),large=byId('large');
const canvas=large.querySelector('canvas'),context=canvas.getContext('2d');
const font='13px system-ui,sans-serif';
const mostValues=120;  // queries and keys whose values are written into cells
let shown=null,weights=null,lines=false,values=false,picked=null;
const wide=list=>{let most=0;for(const t of list)most=Math.max(most,context.measureText(t).width);
  return most};
function tell(event,layer,head,q,k,w){
  tip.textContent=(masks.length>1?'mask: '+masks[mask]+'\n':'')+'layer '+layer+', head '+head+
    '\nquery '+queryLabels[q]+' \u2192 key '+keyLabels[k]+'\nweight '+say(w);
  tip.hidden=false;
  tip.style.left=Math.min(event.clientX+14,innerWidth-tip.offsetWidth-8)+'px';
  tip.style.top=Math.min(event.clientY+14,innerHeight-tip.offsetHeight-8)+'px';
}
function drawHeatmap(){
  context.font=font;
  const most=Math.max(queries,keys),fit=Math.max(2,Math.min(34,Math.floor(660/most)));
  const cell=values&&most<=mostValues?Math.max(28,fit):fit;
  const left=Math.ceil(wide(queryLabels))+34;
  const slanted=Math.ceil(wide(keyLabels)*.71)+16,top=Math.max(slanted,20);
  canvas.width=left+cell*keys+Math.max(slanted,100);canvas.height=top+Math.max(cell*queries,80)+28;
  context.font=font;context.fillStyle='#222';context.textAlign='right';
  for(let q=0;q<queries;q+=Math.ceil(14/cell))context.fillText(queryLabels[q],left-8,top+cell*(q+.5)+4);
  context.textAlign='left';
  for(let k=0;k<keys;k+=Math.ceil(20/cell)){
    context.save();context.translate(left+cell*(k+.5)+2,top-7);context.rotate(-Math.PI/4);
    context.fillStyle=hidden.has(k)?'#bbb':'#222';context.fillText(keyLabels[k],0,0);context.restore();
  }
  context.textAlign='center';context.fillStyle='#666';
  context.fillText('key',left+cell*keys/2,top+cell*queries+20);
  context.save();context.translate(14,top+cell*queries/2);context.rotate(-Math.PI/2);
  context.fillText('query',0,0);context.restore();
  context.imageSmoothingEnabled=false;
  if(area)context.drawImage(imageOf(weights,1),left,top,cell*keys,cell*queries);
  if(values&&cell>=28){
    context.font='11px system-ui,sans-serif';
    for(let q=0;q<queries;++q)for(let k=0;k<keys;++k){
      const w=weights[q*keys+k];
      context.fillStyle=w===0?'#999':dark(colorOf(w))?'#fff':'#000';
      context.fillText(w===0?'\u00b7':w.toFixed(2).replace(/^0/,''),left+cell*(k+.5),top+cell*(q+.5)+4);
    }
  }
  drawBar(left+cell*keys+24,top);
  canvas.at=(x,y)=>[Math.floor((y-top)/cell),Math.floor((x-left)/cell)];
}
function drawBar(x,top){
  const high=Math.min(240,Math.max(80,canvas.height-top-28));
  for(let i=0;i<high;++i){context.fillStyle=css((1-(i+.5)/high)**2);context.fillRect(x,top+i,12,1)}
  context.font='11px system-ui,sans-serif';context.fillStyle='#222';context.textAlign='left';
  const written=[];
  for(const w of [1,0,.5,.25,.1,.01]){
    const y=top+4+(high-4)*(1-Math.sqrt(w))+4;
    if(written.every(other=>Math.abs(other-y)>=12)){written.push(y);context.fillText(w,x+18,y)}
  }
  if(!weights.includes(0))return;
  context.fillStyle=css(0);context.fillRect(x,top+high+12,12,12);
  context.fillStyle='#222';context.fillText('exactly 0',x+18,top+high+22);
}
function drawLines(){
  const row=18,gap=260;
  context.font=font;
  const numbers=40;  // room for the weights of a token
  const left=Math.ceil(wide(queryLabels))+numbers+34,right=left+gap;
  canvas.width=right+Math.ceil(wide(keyLabels))+numbers+24;
  canvas.height=row*Math.max(queries,keys)+12;
  context.font=font;context.strokeStyle='#0072b2';context.lineWidth=2;
  for(let q=0;q<queries;++q)for(let k=0;k<keys;++k){
    const w=weights[q*keys+k];
    if(!(w>.02)||(picked&&!(picked[0]==='q'?picked[1]===q:picked[1]===k)))continue;
    context.globalAlpha=Math.min(1,picked?Math.sqrt(w):w);
    context.beginPath();context.moveTo(left,row*(q+.5)+6);context.lineTo(right,row*(k+.5)+6);
    context.stroke();
  }
  context.globalAlpha=1;
  const words=(list,x,align,kind)=>list.forEach((t,i)=>{
    context.textAlign=align;
    context.fillStyle=kind==='k'&&hidden.has(i)?'#bbb':'#222';
    context.font=(picked&&picked[0]===kind&&picked[1]===i?'bold ':'')+font;
    context.fillText(t,x,row*(i+.5)+10);
    if(!picked||picked[0]===kind)return;
    const w=kind==='k'?weights[picked[1]*keys+i]:weights[i*keys+picked[1]];
    const after=context.measureText(t).width+8;
    context.font='11px system-ui,sans-serif';context.fillStyle='#0072b2';
    const number=w.toFixed(2).replace(/^0/,'');
    if(w>.005)context.fillText(number,align==='left'?x+after:x-after,row*(i+.5)+10);
  });
  words(queryLabels,left-8,'right','q');words(keyLabels,right+8,'left','k');
  canvas.at=(x,y)=>{const i=Math.floor((y-6)/row);return x<left+gap/2?[i,-1]:[-1,i]};
}
function draw(){
  weights=shownOf(...shown);
  lines?drawLines():drawHeatmap();
  large.querySelector('h1').textContent='layer '+shown[0]+', head '+shown[1];
  byId('lines').setAttribute('aria-pressed',lines);
  byId('values').setAttribute('aria-pressed',values);
  byId('all').disabled=!hidden.size;
  byId('left').hidden=!hidden.size;
}
/// Shows the run under another mask: all that is in sight is painted anew.
function choose(next){
  mask=next;tip.hidden=true;
  for(const button of document.querySelectorAll('.masks button'))
    button.setAttribute('aria-pressed',Number(button.value)===mask);
  look();
  if(shown)draw();
}
for(const place of document.querySelectorAll('.masks')){
  place.hidden=masks.length<2;
  place.textContent='Mask (m; all layers were computed anew under each): ';
  masks.forEach((name,i)=>{
    const button=document.createElement('button');
    button.textContent=name;button.value=i;button.onclick=()=>choose(i);place.append(button);
  });
}
function enlarge(layer,head){shown=[layer,head];picked=null;tip.hidden=true;draw();large.hidden=false}
function close(){large.hidden=true;tip.hidden=true;shown=null}
function pointed(event){
  const box=canvas.getBoundingClientRect();
  const [q,k]=canvas.at(event.clientX-box.left,event.clientY-box.top);
  return [q<queries?q:-1,k<keys?k:-1];
}
canvas.onmousemove=event=>{
  const [q,k]=pointed(event);
  if(lines){
    const now=q>=0?['q',q]:k>=0?['k',k]:null;
    if(String(now)!==String(picked)){picked=now;draw()}
  }else if(q>=0&&k>=0)tell(event,...shown,q,k,weights[q*keys+k]);else tip.hidden=true;
};
canvas.onmouseleave=()=>{tip.hidden=true;if(picked){picked=null;draw()}};
canvas.onclick=event=>{
  const k=pointed(event)[1];
  if(k<0)return;
  hidden.has(k)?hidden.delete(k):hidden.add(k);
  tip.hidden=true;draw();
};
const toggle={l:()=>{lines=!lines;picked=null},v:()=>{values=!values},a:()=>hidden.clear()};
for(const [id,key] of [['lines','l'],['values','v'],['all','a']])
  byId(id).onclick=()=>{toggle[key]();draw()};
byId('back').onclick=close;
document.onkeydown=event=>{
  if(event.key==='m')choose((mask+1)%masks.length);
  if(!shown)return;
  const step={ArrowLeft:[0,-1],ArrowRight:[0,1],ArrowUp:[-1,0],ArrowDown:[1,0]}[event.key];
  if(event.key==='Escape')return close();
  if(toggle[event.key]){toggle[event.key]();draw()}
  if(!step)return;
  event.preventDefault();
  enlarge((shown[0]+step[0]+layers)%layers,(shown[1]+step[1]+heads)%heads);
};
)";

/// The thumbnails of all heads, each painted when it comes into sight.
inline constexpr std::string_view html_thumbnails_script = R"(
const all=document.querySelectorAll('td canvas');
function paint(small){
  if(small.mask===mask)return;
  small.mask=mask;
  const image=imageOf(weightsOf(...small.place),Math.ceil(Math.max(queries,keys)/176));
  small.width=image.width;small.height=image.height;
  if(area)small.getContext('2d').drawImage(image,0,0);
}
const seen=new IntersectionObserver(some=>{for(const one of some)if(one.isIntersecting){
  seen.unobserve(one.target);setTimeout(()=>paint(one.target))}});
const look=()=>{for(const small of all)area<20000?paint(small):seen.observe(small)};
for(const small of all){
  const [layer,head]=small.place=[Number(small.dataset.layer),Number(small.dataset.head)];
  small.onmousemove=event=>{
    const box=small.getBoundingClientRect();
    const k=Math.floor((event.clientX-box.left)*keys/box.width);
    const q=Math.floor((event.clientY-box.top)*queries/box.height);
    if(q>=0&&q<queries&&k>=0&&k<keys)tell(event,layer,head,q,k,weightsOf(layer,head)[q*keys+k]);
  };
  small.onmouseleave=()=>{tip.hidden=true};
  small.onclick=()=>enlarge(layer,head);
  small.onkeydown=event=>{if(event.key==='Enter'){enlarge(layer,head);event.stopPropagation()}};
}
choose(0);
)";

/// The thumbnails: one row per layer, one column per head.
HEED_INLINE std::string html_table(Index layers, Index heads) {
  std::string text = "<table><thead><tr><th></th>";
  for (Index head = 0; head < heads; ++head) {
    text += "<th>head " + std::to_string(head) + "</th>";
  }
  text += "</tr></thead>\n";
  for (Index layer = 0; layer < layers; ++layer) {
    text += "<tr><th>layer " + std::to_string(layer) + "</th>";
    for (Index head = 0; head < heads; ++head) {
      text += "<td><canvas tabindex=\"0\" role=\"img\" aria-label=\"layer " +
              std::to_string(layer) + ", head " + std::to_string(head) + "\" data-layer=\"" +
              std::to_string(layer) + "\" data-head=\"" + std::to_string(head) +
              "\"></canvas></td>";
    }
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

inline constexpr std::string_view html_large = R"(<div id="large" hidden><h1></h1>
<p>Arrow keys: other heads and layers. Click a key to leave it out. Escape: back.</p>
<p class="masks" hidden></p>
<button id="back">Back</button><button id="lines">Lines (l)</button><button id="values">Values (v)</button>
<button id="all" disabled>All keys (a)</button>
<p id="left" hidden>Keys are left out: the weights of the others are scaled to add up to 1. In layer 0 these are what
a mask without the keys would give; later layers of a model under such a mask would have other weights.</p>
<canvas></canvas></div><div id="tip" hidden></div>
)";

/// The constants of the script.
HEED_INLINE std::string html_data(const AttentionPage& page) {
  const auto& extents = page.weights.extents();
  std::string text = "'use strict';const layers=" + std::to_string(extents[0]) +
                     ",heads=" + std::to_string(extents[1]) +
                     ",queries=" + std::to_string(extents[2]) +
                     ",keys=" + std::to_string(extents[3]) +
                     ",\nqueryLabels=" + json_labels(page.query_labels, extents[2]) +
                     ",\nkeyLabels=" + json_labels(page.key_labels, extents[3]) + ",\ncolors=[";
  for (int level = 0; level < 256; ++level) {
    const Color color = viridis(level / 255.0);
    text += (level > 0 ? ",[" : "[") + std::to_string(color.red) + "," +
            std::to_string(color.green) + "," + std::to_string(color.blue) + "]";
  }
  text += "],\nmasks=[" + json_string(page.mask);
  for (const AttentionUnder& other : page.others) text += "," + json_string(other.mask);
  const auto masks = static_cast<Index>(1 + page.others.size());
  const bool exact = page.weights.size() * masks <= most_exact_weights;
  text += "],\nexact=" + std::string(exact ? "true" : "false") + ",\ndata=[";
  for (Index mask = 0; mask < masks; ++mask) {
    const auto& weights =
        mask == 0 ? page.weights : page.others[static_cast<std::size_t>(mask - 1)].weights;
    const auto area = static_cast<std::size_t>(extents[2] * extents[3]);
    for (Index head = 0; head < extents[0] * extents[1]; ++head) {
      const std::span<const float> of(weights.data() + head * extents[2] * extents[3], area);
      text += "'" + base64_of(of, exact) + "',\n";
    }
  }
  return text + "];";
}

HEED_INLINE std::string html_of(const AttentionPage& page) {
  const auto check = [](const char* what, std::size_t labels, Index extent) {
    if (labels != 0 && static_cast<Index>(labels) != extent) {
      throw_shape_error("to_html: ", labels, " ", what, " labels for weights with ", extent);
    }
  };
  check("query", page.query_labels.size(), page.weights.extent(2));
  check("key", page.key_labels.size(), page.weights.extent(3));
  for (const AttentionUnder& other : page.others) {
    if (other.weights.extents() == page.weights.extents()) continue;
    throw_shape_error("to_html: weights ", other.weights.extents(), " under '", other.mask,
                      "' beside ", page.weights.extents());
  }
  const std::string title = page.title.empty() ? "Attention" : escaped(page.title);
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
         title + "</title>\n<style>" + std::string(html_style) + std::string(html_tip_style) +
         "</style></head>\n<body><h1>" + title +
         "</h1>\n<p>A row looks, a column is looked at. Click to enlarge one.</p>\n" +
         "<p class=\"masks\" hidden></p>\n" +
         html_table(page.weights.extent(0), page.weights.extent(1)) + std::string(html_large) +
         "<script>" + html_data(page) + std::string(html_weights_script) +
         std::string(html_large_script) + std::string(html_thumbnails_script) +
         "</script></body></html>\n";
}

/// Tells the value under the pointer where cells are too many to have titles of their own.
inline constexpr std::string_view html_tell_script = R"(
const svg=document.querySelector('svg'),tip=document.getElementById('tip');
for(const c of told){
  const text=atob(c.data),bytes=new Uint8Array(text.length);
  for(let i=0;i<bytes.length;++i)bytes[i]=text.charCodeAt(i);
  c.values=new Float32Array(bytes.buffer);
}
svg.onmousemove=event=>{
  const at=new DOMPoint(event.clientX,event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  tip.hidden=true;
  for(const c of told){
    const row=Math.floor((at.y-c.y)/c.high),column=Math.floor((at.x-c.x)/c.wide);
    if(row<0||column<0||row>=c.rows.length||column>=c.columns.length)continue;
    const v=c.values[row*c.columns.length+column];
    tip.textContent=c.rows[row]+' \u2192 '+c.columns[column]+': '+
      (c.categories[v]??(isFinite(v)?Number(v.toPrecision(4)):v===-Infinity?'-\u221e':v));
    tip.hidden=false;
    tip.style.left=Math.min(event.clientX+14,innerWidth-tip.offsetWidth-8)+'px';
    tip.style.top=Math.min(event.clientY+14,innerHeight-tip.offsetHeight-8)+'px';
  }
};
)";

/// The cells of a picture that have no titles, for the script; empty if there are none.
HEED_INLINE std::string told_cells(const Picture& picture) {
  std::string list;
  for (const PictureCells& cells : picture.cells) {
    if (cells.values.empty()) continue;
    const auto field = [](const char* name, double value) {
      return std::string(name) + fixed(value, 1) + ",";
    };
    const auto named = static_cast<Index>(cells.categories.size());
    list += "{" + field("x:", cells.at.x) + field("y:", cells.at.y) +
            field("wide:", static_cast<double>(cells.cell_width)) +
            field("high:", static_cast<double>(cells.cell_height)) +
            "rows:" + json_labels(cells.row_names, cells.rows) +
            ",\ncolumns:" + json_labels(cells.column_names, cells.columns) +
            ",\ncategories:" + json_labels(cells.categories, named) + ",\ndata:'" +
            base64_of(std::span<const float>(cells.values), true) + "'},\n";
  }
  return list;
}

HEED_INLINE std::string html_around(const std::string& title, const Picture& picture) {
  const std::string told = told_cells(picture);
  const char* allowed = told.empty() ? "" : "; script-src 'unsafe-inline'";
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
         "data:; "
         "style-src 'unsafe-inline'" +
         std::string(allowed) + "\">\n<title>" + escaped(title) +
         "</title><style>svg{max-width:100%;height:auto}</style></head>\n<body>\n" +
         svg_of(picture) +
         (told.empty() ? ""
                       : "<style>" + std::string(html_tip_style) +
                             "</style><div id=\"tip\" hidden></div>\n<script>const told=[" + told +
                             "];" + std::string(html_tell_script) + "</script>") +
         "</body></html>\n";
}

}  // namespace heed::detail
